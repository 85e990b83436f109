// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/mesh"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
)

// leaving selects the objects that are left out of a resource for a client that rejects it, and
// collects the objects that contribute to the resource. It belongs to one call.
type leaving struct {
	out   func(ads.Contribution) ads.Omission
	all   []ads.Contribution
	known map[ads.Contribution]ads.Omission
}

// without builds a resource without some contributions, see ads.Answer.
func (st *state) without(p *proxy, typeURL, name string, out func(ads.Contribution) ads.Omission) (proto.Message, []ads.Contribution, error) {
	l := &leaving{out: out, known: make(map[ads.Contribution]ads.Omission)}
	of := *p
	of.leaving = l
	m, err := st.resource(&of, typeURL, name)
	return m, l.all, err
}

// leaves records that an object contributes to the resource of a proxy, and returns how much of the
// object is left out.
func (p *proxy) leaves(c *configstore.Config, state any) ads.Omission {
	if p.leaving == nil {
		return ads.Included
	}
	return p.leaving.of(ads.Contribution{Object: c.Key(), State: state})
}

// leavesService is leaves for a service, which contributes its host names.
func (p *proxy) leavesService(svc *mesh.Service) ads.Omission {
	if p.leaving == nil {
		return ads.Included
	}
	state := serviceState{svc.Of[0], svc.Of[len(svc.Of)-1], len(svc.Of)}
	return p.leaving.of(ads.Contribution{Object: xdsupdate.ServiceKey(svc.Host, svc.Namespace), State: state})
}

// serviceState identifies a state of a service, which several registries may have.
type serviceState struct {
	first, last *registry.Service
	count       int
}

// leavesRules is leaves for the routes of a VirtualService.
func (st *state) leavesRules(p *proxy, v *objects.VirtualService) ads.Omission {
	if p.leaving == nil {
		return ads.Included
	}
	return p.leaves(v.Config, st.rulesState(v))
}

func (l *leaving) of(contribution ads.Contribution) ads.Omission {
	left, known := l.known[contribution]
	if !known {
		left = l.out(contribution)
		l.known[contribution] = left
		l.all = append(l.all, contribution)
	}
	return left
}

// rulesState identifies a revision of the rules of a VirtualService, including its delegates.
type rulesState struct {
	of        *objects.VirtualService
	delegates string
}

func (st *state) rulesState(v *objects.VirtualService) rulesState {
	out := rulesState{of: v}
	var delegates strings.Builder
	for _, r := range v.Spec.GetHttp() {
		if r.GetDelegate() != nil {
			fmt.Fprintf(&delegates, "%p ", st.DelegateOf(v, r))
		}
	}
	out.delegates = delegates.String()
	return out
}

// routesOrFailing returns routes of a VirtualService or, if the VirtualService is left out, routes
// that answer the same requests with 500. Routes with other matches than plain paths, such as
// regular expressions, may be the reason for the rejection. They are replaced by a route that
// answers all remaining requests with 500, as are all routes if more is left out.
func (st *state) routesOrFailing(p *proxy, v *objects.VirtualService, at place, routes []*routev3.Route) []*routev3.Route {
	if p.leaving == nil || len(routes) == 0 {
		return routes
	}
	how := st.leavesRules(p, v)
	if how == ads.Included {
		return routes
	}
	all := st.routeScope(p, v.Namespace, at).FailingRoutes()
	if how > ads.Failing || p.Role == objects.GRPCClient {
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
