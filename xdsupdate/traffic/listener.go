// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"

	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
)

// listener returns a listener of a proxy by its name, or nil, and the errors for parts of it that
// are left out. The host configures the listeners of sidecars.
func (st *state) listener(p *proxy, name string) (*listenerv3.Listener, []error) {
	switch p.Role {
	case objects.GRPCClient:
		if _, inbound, _ := xdsbuild.ParseInboundName(name); inbound {
			return st.serverListener(p, name)
		}
		return st.grpcListener(p, name), nil
	case objects.Router:
		return st.gatewayListener(p, name)
	default:
		return nil, nil
	}
}
