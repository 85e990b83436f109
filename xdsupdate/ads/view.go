// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// View is what decides which resources a proxy is sent. Proxies with the same
// view share everything. It is comparable.
type View struct {
	// Namespace is where the proxy runs: it limits the services that are visible.
	Namespace string
	// Cluster is where the proxy runs: it limits the endpoints that are visible.
	Cluster registry.ClusterID
	// Client is the kind of the proxy.
	Client envoy.Client
}

// view is the state of a View.
type view struct {
	View
	// ready is false until the generators have been asked for the first time.
	ready bool
	// proxies counts the connections; the view ends with the last one.
	proxies int
	// overlay holds what generators made, by type URL and name. A nil resource
	// hides the built-in one.
	overlay map[string]map[string]*resource
	// routes holds the HTTP route configurations that were asked for, by port.
	routes map[uint32]*resource
}
