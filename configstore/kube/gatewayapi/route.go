// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"maps"
	"slices"
	"strconv"

	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/internal/excerpt"
)

// routeState is the result of a route.
type routeState struct {
	// hosts contains the contributions of an HTTPRoute or GRPCRoute, by host.
	hosts map[hostKey]*contribution
	// configs are the VirtualServices of a TCPRoute or TLSRoute.
	configs map[Key]*configstore.Config
	// attached are the listeners that have accepted it.
	attached map[listenerKey]struct{}
	// uses are the Services and ServiceEntries that it references, with the Gateways that have
	// accepted it.
	uses map[use]struct{}
}

type listenerKey struct {
	parent  parentKey
	section string
}

type use struct {
	target  target
	gateway Key
}

// common contains the common fields of all kinds of routes.
type common struct {
	kind       Kind
	object     metav1.Object
	parentRefs []gatewayv1.ParentReference
	hostnames  []string // anyHost if unset
	// badHosts are the problems of hostnames that are dropped because they are invalid.
	badHosts []string
	status   gatewayv1.RouteStatus
}

func commonOf(kind Kind, object metav1.Object) common {
	out := common{kind: kind, object: object}
	var hostnames []gatewayv1.Hostname
	switch o := object.(type) {
	case *gatewayv1.HTTPRoute:
		out.parentRefs, hostnames, out.status = o.Spec.ParentRefs, o.Spec.Hostnames, o.Status.RouteStatus
	case *gatewayv1.GRPCRoute:
		out.parentRefs, hostnames, out.status = o.Spec.ParentRefs, o.Spec.Hostnames, o.Status.RouteStatus
	case *gatewayv1.TLSRoute:
		out.parentRefs, hostnames, out.status = o.Spec.ParentRefs, o.Spec.Hostnames, o.Status.RouteStatus
	case *gatewayv1.TCPRoute:
		out.parentRefs, out.status = o.Spec.ParentRefs, o.Status.RouteStatus
	}
	for _, host := range hostnames {
		if isHostname(string(host)) {
			out.hostnames = append(out.hostnames, string(host))
		} else {
			out.badHosts = append(out.badHosts, "hostname "+strconv.Quote(excerpt.Name(string(host)))+" is not a host name")
		}
	}
	if len(hostnames) == 0 {
		out.hostnames = []string{anyHost}
	}
	return out
}

// unusable returns the reason why a route cannot attach to any parent: all of its hostnames are
// invalid.
func (of common) unusable() problem {
	if len(of.hostnames) > 0 {
		return problem{}
	}
	return problem{string(gatewayv1.RouteReasonUnsupportedValue), of.badHosts[0]}
}

// computeRoute recomputes the result of a route, and invalidates the results that depend on it.
func (c *Converter) computeRoute(n node) {
	key := routeKey{n.route, n.key}
	old := c.routeStates[key]
	if old == nil {
		old = &routeState{}
	}
	next := &routeState{}
	if object := c.routeObjects[key]; object != nil {
		next = c.convertRoute(n, commonOf(key.Kind, object))
		c.routeStates[key] = next
	} else {
		delete(c.routeStates, key)
		c.publishStatus(key.Kind, key.Key, nil)
	}
	c.contribute(key, old.hosts, next.hosts)
	c.replaceConfigs(istio.VirtualService, old.configs, next.configs)
	for at := range old.attached {
		if _, stays := next.attached[at]; !stays {
			c.attach(at, -1)
		}
	}
	for at := range next.attached {
		if _, was := old.attached[at]; !was {
			c.attach(at, 1)
		}
	}
	for u := range old.uses {
		if _, stays := next.uses[u]; !stays && c.users.add(u.target, u.gateway, -1) {
			c.touch(topic{usersOf, u.target.Key})
		}
	}
	for u := range next.uses {
		if _, was := old.uses[u]; !was && c.users.add(u.target, u.gateway, 1) {
			c.touch(topic{usersOf, u.target.Key})
		}
	}
}

// attach changes the number of routes at a listener.
func (c *Converter) attach(at listenerKey, by int) {
	c.attached.add(at.parent, at.section, by)
	kind := nodeGatewayStatus
	if at.parent.Kind == KindListenerSet {
		kind = nodeListenerSetStatus
	}
	c.mark(node{kind, "", at.parent.Key})
}

// convertRoute converts a route of any kind, and publishes its status.
func (c *Converter) convertRoute(n node, of common) *routeState {
	v := view{c, n}
	state := &routeState{
		hosts: map[hostKey]*contribution{}, configs: map[Key]*configstore.Config{},
		attached: map[listenerKey]struct{}{}, uses: map[use]struct{}{},
	}
	results := v.resolveParents(of.kind, n.key.Namespace, of.parentRefs, of.hostnames)
	converted := map[bool]converted{}
	for i, result := range results {
		if none := of.unusable(); none.is() {
			result.denied, result.found = none, nil
			results[i] = result
		}
		if _, done := converted[result.mesh]; !done {
			r := &resolver{view: v, kind: of.kind, ns: n.key.Namespace, mesh: result.mesh, named: map[target]struct{}{}}
			converted[result.mesh] = r.convert(of.object)
			converted[result.mesh].badHosts = of.badHosts
		}
		of.add(v, state, &result, converted[result.mesh])
	}
	c.publishStatus(of.kind, n.key, c.routeStatus(of, results, converted))
	return state
}

// converted are the rules of a route, for Gateways or for the mesh.
type converted struct {
	*rules

	// lists are the destinations of the rules of TCPRoutes and TLSRoutes.
	lists [][]*networking.RouteDestination
	named map[target]struct{}
}

func (r *resolver) convert(object metav1.Object) converted {
	out := converted{rules: &rules{}}
	switch o := object.(type) {
	case *gatewayv1.HTTPRoute:
		out.rules = r.convertHTTPRoute(o)
	case *gatewayv1.GRPCRoute:
		out.rules = r.convertGRPCRoute(o)
	case *gatewayv1.TLSRoute:
		for i := range o.Spec.Rules {
			out.lists = append(out.lists, r.layer4(o.Spec.Rules[i].BackendRefs))
		}
	case *gatewayv1.TCPRoute:
		for i := range o.Spec.Rules {
			out.lists = append(out.lists, r.layer4(o.Spec.Rules[i].BackendRefs))
		}
	}
	out.unresolved, out.named = r.unresolved, r.named
	return out
}

// add adds the contributions of a route at one of its parents.
func (of common) add(v view, state *routeState, result *parentResult, what converted) {
	ns := of.object.GetNamespace()
	for i := range result.found {
		at := &result.found[i]
		if at.listener != nil && !what.invalid().is() {
			state.attached[listenerKey{at.owner, at.listener.Section}] = struct{}{}
			for named := range what.named {
				state.uses[use{named, at.listener.Gateway}] = struct{}{}
			}
		}
		if of.kind == KindTCPRoute || of.kind == KindTLSRoute {
			of.addLayer4(v, state, at, what)
			continue
		}
		routes := what.routes
		var keys []hostKey
		if at.listener == nil {
			for _, host := range at.hosts {
				keys = append(keys, hostKey{mesh: true, namespace: ns, host: host, port: at.port})
			}
			routes = onPort(routes, at.port)
		} else {
			for _, host := range at.serves(of.hostnames) {
				keys = append(keys, hostKey{namespace: at.owner.Namespace, gateway: at.listener.Config, host: host})
			}
		}
		for _, key := range keys {
			if len(routes) > 0 {
				state.hosts[key] = &contribution{
					from: routeKey{of.kind, keyOf(of.object)}, created: of.object.GetCreationTimestamp(), routes: routes,
					consumer: key.mesh && v.consumes(at, key.host, ns),
				}
			}
		}
	}
}

// onPort restricts routes to a port of their Service; 0 means all ports.
func onPort(routes []*networking.HTTPRoute, port int32) []*networking.HTTPRoute {
	if port == 0 {
		return routes
	}
	out := make([]*networking.HTTPRoute, len(routes))
	for i, route := range routes {
		match := &networking.HTTPMatchRequest{}
		if len(route.Match) > 0 {
			match = proto.CloneOf(route.Match[0])
		}
		match.Port = uint32(port) //nolint:gosec // 1 to 65535
		out[i] = withMatch(route, match)
	}
	return out
}

// maxParents is the maximum number of entries in the status of a route.
const maxParents = 32

// routeStatus returns the status of a route: the unchanged entries of other controllers, and one
// entry for each parentRef of ours, as many as fit.
func (c *Converter) routeStatus(of common, results []parentResult, what map[bool]converted) *gatewayv1.RouteStatus {
	status := &gatewayv1.RouteStatus{Parents: []gatewayv1.RouteParentStatus{}}
	for _, entry := range of.status.Parents {
		if entry.ControllerName != ControllerName {
			status.Parents = append(status.Parents, entry)
		}
	}
	for i := range results {
		result := &results[i]
		rules := what[result.mesh].rules
		refused := c.refusals.ofRoute(routeKey{of.kind, keyOf(of.object)}, result)
		conditions := []metav1.Condition{
			goodUnless(accepted, "the route is accepted", result.denied.or(rules.invalid()).or(refused)),
			goodUnless(resolvedRefs, "all references are resolved", rules.unresolved),
		}
		if partial := rules.partial(); partial.is() && !result.denied.is() {
			conditions = append(conditions, metav1.Condition{
				Type: partiallyInvalid, Status: metav1.ConditionTrue, Reason: partial.reason, Message: partial.message,
			})
		}
		status.Parents = append(status.Parents, gatewayv1.RouteParentStatus{
			ParentRef: result.ref, ControllerName: ControllerName,
			Conditions: renew(conditionsFor(of.status, result.ref), of.object.GetGeneration(),
				[]string{accepted, resolvedRefs, partiallyInvalid}, conditions...),
		})
	}
	status.Parents = status.Parents[:min(len(status.Parents), maxParents)]
	return status
}

// conditionsFor returns the conditions of our entry for a parentRef.
func conditionsFor(status gatewayv1.RouteStatus, ref gatewayv1.ParentReference) []metav1.Condition {
	i := slices.IndexFunc(status.Parents, func(p gatewayv1.RouteParentStatus) bool {
		return p.ControllerName == ControllerName && sameParent(p.ParentRef, ref)
	})
	if i < 0 {
		return nil
	}
	return status.Parents[i].Conditions
}

func sameParent(a, b gatewayv1.ParentReference) bool {
	return a.Name == b.Name && deref(a.Namespace, "") == deref(b.Namespace, "") && deref(a.SectionName, "") == deref(b.SectionName, "") &&
		deref(a.Port, 0) == deref(b.Port, 0) && kindOf(a.Kind, string(KindGateway)) == kindOf(b.Kind, string(KindGateway)) &&
		groupOf(a.Group, gatewayv1.GroupName) == groupOf(b.Group, gatewayv1.GroupName)
}

// contribute replaces the contributions of a route. A host whose contribution is unchanged is not
// recomputed.
func (c *Converter) contribute(key routeKey, old, next map[hostKey]*contribution) {
	for host := range old {
		if next[host] == nil {
			delete(c.hosts[host], key)
			c.dirtyHosts[host] = struct{}{}
		}
	}
	for host, now := range next {
		if was := old[host]; was != nil && was.equal(now) {
			next[host] = was
			continue
		}
		if c.hosts[host] == nil {
			c.hosts[host] = map[routeKey]*contribution{}
		}
		c.hosts[host][key] = now
		c.dirtyHosts[host] = struct{}{}
	}
}

// sortedContributions returns the contributions in the order of the routes' precedence.
func sortedContributions(of map[routeKey]*contribution) []*contribution {
	return slices.SortedFunc(maps.Values(of), (*contribution).compare)
}
