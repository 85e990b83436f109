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

// Options say what there is to show. Each part may be nil, and then its pages are missing.
type Options struct {
	// Configs are the objects: a store, a cache, or an aggregate of them.
	Configs configstore.Reader
	// Services are the services. If they are, or wrap, an aggregate.Controller there are
	// conflicts; if a serviceentry.Controller is among them there are explanations and Verify, and if
	// a registry.PodExplainer is, explanations of pods.
	Services registry.ServiceDiscovery
	// Server has the proxies, the endpoints and the queue of pushes.
	Server *ads.Server
	// Policies explain calls and say which objects have no effect.
	Policies *traffic.Policies
	// Sources are what fills stores and registries, as configstore.SourceOf makes them. If a
	// State panics the page says so in its place.
	Sources []configstore.Source

	// Authorize decides who may see all this, from the request as the program's handler gets it.
	// With an error the answer is 403 and has the error's text. It is called once for each
	// request, before anything else is done. Nil: everybody may who reaches the handler.
	Authorize func(*http.Request) error
	// Redact removes what is secret from an object of the program's own kinds before it is shown; the
	// object is a copy that it may modify. What is removed in any case is in the package comment.
	// Nil: nothing else is.
	Redact func(*configstore.Config)
	// Logger gets what panicked in functions of the program, with the stack; nil discards.
	Logger *slog.Logger
}
