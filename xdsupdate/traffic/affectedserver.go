// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"slices"

	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
)

// serverListeners adds the listeners of the gRPC servers in a namespace that of accepts. An empty
// namespace stands for all.
func (c *affected) serverListeners(namespace string, of func(p *proxy) bool) {
	c.affect(namespace, envoy.ListenerType, func(p *proxy) bool { return len(p.server) > 0 && of(p) })
}

// selectsServer reports whether a policy selects a server before or after the push.
func (c *affected) selectsServer(a *objects.AuthorizationPolicy, p *proxy) bool {
	return slices.ContainsFunc(c.states(), func(st *state) bool {
		return slices.ContainsFunc(labelsOf(st.workloads.At(p.Namespace, p.server)), a.Selects)
	})
}

// serverWorkloads adds the listeners of gRPC servers with changed workloads.
func (c *affected) serverWorkloads() {
	if !c.clients.servers() {
		return
	}
	places := c.places()
	namespaces := make(map[string]struct{})
	for at := range places {
		namespaces[at.namespace] = struct{}{}
	}
	for namespace := range namespaces {
		c.serverListeners(namespace, func(p *proxy) bool {
			return slices.ContainsFunc(p.server, func(address string) bool {
				_, changed := places[workloadPlace{p.Namespace, address}]
				return changed
			})
		})
	}
}
