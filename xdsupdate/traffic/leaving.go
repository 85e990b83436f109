// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
)

// leaving selects the objects that are left out of a resource for a client that rejects it, and
// collects the objects that contribute to the resource. It belongs to one call.
type leaving struct {
	out   func(ads.Contribution) bool
	all   []ads.Contribution
	known map[ads.Contribution]bool // whether it is left out
}

// without builds a resource without some contributions, see ads.Answer.
func (st *state) without(p *proxy, typeURL, name string, out func(ads.Contribution) bool) (proto.Message, []ads.Contribution, error) {
	l := &leaving{out: out, known: make(map[ads.Contribution]bool)}
	of := *p
	of.leaving = l
	m, err := st.resource(&of, typeURL, name)
	return m, l.all, err
}

// leaves records that an object contributes to the resource of a proxy, and reports whether the
// object is left out.
func (p *proxy) leaves(c *configstore.Config, state any) bool {
	if p.leaving == nil {
		return false
	}
	contribution := ads.Contribution{Object: c.Key(), State: state}
	left, known := p.leaving.known[contribution]
	if !known {
		left = p.leaving.out(contribution)
		p.leaving.known[contribution] = left
		p.leaving.all = append(p.leaving.all, contribution)
	}
	return left
}

// rulesState identifies a revision of the rules of a VirtualService, including its delegates.
type rulesState struct {
	of        *virtualService
	delegates string
}

func (st *state) rulesState(v *virtualService) rulesState {
	out := rulesState{of: v}
	var delegates strings.Builder
	for _, r := range v.spec.GetHttp() {
		if r.GetDelegate() != nil {
			fmt.Fprintf(&delegates, "%p ", st.delegateOf(v, r))
		}
	}
	out.delegates = delegates.String()
	return out
}

// routesOrFailing returns routes of a VirtualService or, if the VirtualService is left out, routes
// that answer the same requests with 500. Routes with other matches than plain paths, such as
// regular expressions, may be the reason for the rejection. They are replaced by a route that
// answers all remaining requests with 500.
func (st *state) routesOrFailing(p *proxy, v *virtualService, at place, routes []*routev3.Route) []*routev3.Route {
	if p.leaving == nil || len(routes) == 0 || !p.leaves(v.config, st.rulesState(v)) {
		return routes
	}
	all := st.routeScope(p, v.namespace, at).FailingRoutes()
	if p.role == grpcClient {
		return all
	}
	var out []*routev3.Route
	for _, r := range routes {
		if isPlainMatch(r.GetMatch()) {
			out = append(out, &routev3.Route{Match: r.GetMatch(), Action: all[0].GetAction()})
		}
	}
	if len(out) < len(routes) {
		out = append(out, all...)
	}
	return out
}

// isPlainMatch reports whether a match consists only of a path or a path prefix.
func isPlainMatch(m *routev3.RouteMatch) bool {
	switch m.GetPathSpecifier().(type) {
	case *routev3.RouteMatch_Prefix, *routev3.RouteMatch_Path, *routev3.RouteMatch_PathSeparatedPrefix:
	default:
		return false
	}
	return len(m.GetHeaders())+len(m.GetQueryParameters())+len(m.GetDynamicMetadata()) == 0
}
