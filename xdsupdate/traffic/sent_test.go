// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"
)

// The functions of this file return what is sent without what is left out of it.

func (st *state) routesSent(p *proxy, name string) *routev3.RouteConfiguration {
	out, _ := st.routes(p, name)
	return out
}

func (st *state) listenerSent(p *proxy, name string) *listenerv3.Listener {
	out, _ := st.listener(p, name)
	return out
}

func (st *state) resourceSent(p *proxy, typeURL, name string) proto.Message {
	out, _ := st.resource(p, typeURL, name)
	return out
}
