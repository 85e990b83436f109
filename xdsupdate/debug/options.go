// SPDX-License-Identifier: Apache-2.0

package debug

import (
	"log/slog"
	"net/http"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// Options are the parts of a control plane to show. Each part may be nil, and then its pages do not
// exist.
type Options struct {
	// Configs has the objects: a store, a cache, or an aggregate of them.
	Configs configstore.Reader
	// Services has the services. The page of conflicts exists if Services is, or wraps, an
	// aggregate.Controller. Explanations and the page verify exist if a serviceentry.Controller is
	// among the registries, explanations of pods if a registry.PodExplainer is.
	Services registry.ServiceDiscovery
	// Server has the proxies, the endpoints and the queue of pushes.
	Server *ads.Server
	// Policies explains calls and finds objects without effect.
	Policies *traffic.Policies
	// Sources are the sources of the stores and registries: see configstore.SourceOf. If the State
	// of a source panics, the page reports that for the source.
	Sources []configstore.Source

	// Authorize decides whether a request may see the pages. It gets the request as the host's
	// http.Handler received it, and is called once for each request before anything else. If it
	// returns an error, the response is 403 with the text of the error. With nil, everyone who can
	// reach the handler may see the pages.
	Authorize func(*http.Request) error
	// Redact removes secrets from an object of the host's own kinds before it is shown. The object
	// is a copy, which Redact may modify. The package comment lists the secrets that are always
	// redacted. Nil redacts no others.
	Redact func(*configstore.Config)
	// Logger receives panics of the host's functions, with the stack. Nil discards them.
	Logger *slog.Logger
}
