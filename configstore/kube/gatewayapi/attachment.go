// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"slices"
	"strconv"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// attachment is a resolved parent of a route: a listener, or a Service or ServiceEntry of the mesh.
type attachment struct {
	listener *listenerView
	owner    parentKey // of the listener
	// hosts are the mesh hosts of a Service or ServiceEntry in namespace. port is the port of the
	// parentRef, or 0 for all ports.
	hosts     []string
	namespace string
	port      int32
	// banned are the hosts of more specific listeners, which serve the names that they match.
	banned []string
}

// parentResult is the result of resolving a parentRef of ours.
type parentResult struct {
	ref    gatewayv1.ParentReference
	mesh   bool
	denied problem
	found  []attachment
}

// resolveParents resolves the parents of a route. A parentRef of another controller has no result.
func (v view) resolveParents(kind Kind, ns string, refs []gatewayv1.ParentReference, hostnames []string) []parentResult {
	var out []parentResult
	for i := range refs {
		ref := &refs[i]
		group, parent := groupOf(ref.Group, gatewayv1.GroupName), kindOf(ref.Kind, string(KindGateway))
		key := Key{namespaceOf(ref.Namespace, ns), string(ref.Name)}
		var result *parentResult
		switch {
		case group == gatewayv1.GroupName && (Kind(parent) == KindGateway || Kind(parent) == KindListenerSet):
			result = v.resolveListeners(parentKey{Kind(parent), key}, kind, ns, ref, hostnames)
		case group == "" && parent == kindService:
			result = v.resolveService(key, ref)
		case group == groupIstio && parent == kindServiceEntry:
			result = v.resolveServiceEntry(key, ref)
		}
		if result != nil {
			result.ref = *ref
			out = append(out, *result)
		}
	}
	return out
}

// listenersOf returns the listeners of a parent. ok is false if this controller does not handle the
// parent.
func (v view) listenersOf(parent parentKey) (listeners []*listener, ok bool) {
	if parent.Kind == KindListenerSet {
		v.read(listenersOfSet, parent.Key)
		state := v.c.setStates[parent.Key]
		if state == nil || state.notAllowed.is() {
			return nil, false
		}
		return state.listeners, true
	}
	v.read(listenersOfGateway, parent.Key)
	state := v.c.gatewayStates[parent.Key]
	if state == nil || state.ownership != ours {
		return nil, false
	}
	return state.listeners, true
}

func (v view) resolveListeners(
	parent parentKey, kind Kind, ns string, ref *gatewayv1.ParentReference, hostnames []string,
) *parentResult {
	listeners, ok := v.listenersOf(parent)
	if !ok {
		return nil
	}
	result := &parentResult{denied: problem{string(gatewayv1.RouteReasonNoMatchingParent), "the parent has no such listener"}}
	for _, l := range listeners {
		why := v.refuses(&l.view, kind, ns, ref, hostnames)
		if why.is() {
			if rank(why) > rank(result.denied) {
				result.denied = why
			}
			continue
		}
		result.found = append(result.found, attachment{listener: &l.view, owner: parent, banned: nearer(&l.view, listeners)})
	}
	if len(result.found) > 0 {
		result.denied = problem{}
	}
	return result
}

// rank orders the reasons of several listeners. The status contains the most specific reason.
func rank(p problem) int {
	return slices.Index([]string{
		string(gatewayv1.RouteReasonNoMatchingParent), string(gatewayv1.RouteReasonNoMatchingListenerHostname),
		string(gatewayv1.RouteReasonNotAllowedByListeners),
	}, p.reason)
}

// refuses returns the reason why a listener does not accept a route. A listener that does not work
// accepts routes, unless it conflicts with another listener.
func (v view) refuses(l *listenerView, kind Kind, ns string, ref *gatewayv1.ParentReference, hostnames []string) problem {
	switch {
	case ref.Port != nil && *ref.Port != l.Port:
		return problem{string(gatewayv1.RouteReasonNoMatchingParent), "no listener has port " + strconv.Itoa(int(*ref.Port))}
	case deref(ref.SectionName, "") != "" && string(*ref.SectionName) != l.Section:
		return problem{string(gatewayv1.RouteReasonNoMatchingParent), "no listener is named " + string(*ref.SectionName)}
	case !slices.ContainsFunc(hostnames, func(h string) bool { return overlap(h, l.Host) }):
		return problem{string(gatewayv1.RouteReasonNoMatchingListenerHostname), "no hostname matches that of a listener, " + l.Host}
	case !v.allows(l.From, l.Selector, l.Namespace, ns):
		return problem{string(gatewayv1.RouteReasonNotAllowedByListeners), "listener " + l.Section + " does not allow namespace " + ns}
	case !slices.Contains(l.Kinds, kind):
		return problem{string(gatewayv1.RouteReasonNotAllowedByListeners), "listener " + l.Section + " does not allow kind " + string(kind)}
	case l.Conflicted:
		return problem{string(gatewayv1.RouteReasonNotAllowedByListeners), "listener " + l.Section + " is in conflict with another one"}
	}
	return problem{}
}

// nearer returns the hosts of the more specific listeners of the same port and protocol, which
// serve the names that they match.
func nearer(l *listenerView, listeners []*listener) []string {
	var out []string
	for _, other := range listeners {
		o := &other.view
		if !o.Conflicted && o.Port == l.Port && o.Protocol == l.Protocol && o.Host != l.Host && within(o.Host, l.Host) {
			out = append(out, o.Host)
		}
	}
	return out
}

// serves returns the hosts of a route that an attachment's listener serves. They are not narrowed
// to the listener's host, because the hosts of the server do that.
func (a *attachment) serves(hostnames []string) []string {
	var out []string
	for _, host := range hostnames {
		taken := slices.ContainsFunc(a.banned, func(nearer string) bool { return within(host, nearer) })
		if overlap(host, a.listener.Host) && !taken {
			out = append(out, host)
		}
	}
	return out
}

// resolveService resolves a Service as the parent of a route of the mesh.
func (v view) resolveService(key Key, ref *gatewayv1.ParentReference) *parentResult {
	result := &parentResult{mesh: true}
	s := v.service(key)
	if s == nil {
		result.denied = problem{string(gatewayv1.RouteReasonNoMatchingParent), "Service " + key.String() + " does not exist"}
		return result
	}
	if v.hasForeignWaypoint(key, s) {
		return nil
	}
	port := deref(ref.Port, 0)
	if _, has := s.ports[port]; port != 0 && !has {
		result.denied = problem{string(gatewayv1.RouteReasonNoMatchingParent), "Service " + key.String() + " has no such port"}
		return result
	}
	result.found = []attachment{{hosts: []string{v.c.serviceHost(key)}, namespace: key.Namespace, port: port}}
	return result
}

// consumes reports whether a route that is attached to a host of the mesh applies only to clients
// of its own namespace (a consumer route). That is the case if the host belongs to a Service or
// ServiceEntry of another namespace, or has the name of such a Service.
func (v view) consumes(a *attachment, host, ns string) bool {
	service, is := v.c.serviceOfHost(host)
	return a.namespace != ns || is && service.Namespace != ns
}

// hasForeignWaypoint reports whether a Service is behind a waypoint of another controller, which
// handles the Service's routes.
func (v view) hasForeignWaypoint(key Key, s *service) bool {
	at := Key{key.Namespace, s.labels[labelUseWaypoint]}
	if ns := s.labels[labelUseWaypointNamespace]; ns != "" {
		at.Namespace = ns
	}
	if at.Name == "" {
		labels, _ := v.namespaceLabels(key.Namespace)
		at.Name = labels[labelUseWaypoint]
		if ns := labels[labelUseWaypointNamespace]; ns != "" {
			at.Namespace = ns
		}
	}
	if at.Name == "" || at.Name == "none" {
		return false
	}
	waypoint := v.gateway(at)
	if waypoint == nil {
		return false
	}
	class := v.class(string(waypoint.Spec.GatewayClassName))
	return class != nil && controlled(class) == foreign && class.Spec.ControllerName != meshController
}

// resolveServiceEntry resolves a ServiceEntry as the parent of a route of the mesh.
func (v view) resolveServiceEntry(key Key, ref *gatewayv1.ParentReference) *parentResult {
	result := &parentResult{mesh: true}
	entry := v.serviceEntry(key)
	if entry == nil {
		result.denied = problem{string(gatewayv1.RouteReasonNoMatchingParent), "ServiceEntry " + key.String() + " does not exist"}
		return result
	}
	port := deref(ref.Port, 0)
	has := port == 0
	for _, p := range entry.Spec.GetPorts() {
		has = has || int64(p.GetNumber()) == int64(port)
	}
	if !has {
		result.denied = problem{string(gatewayv1.RouteReasonNoMatchingParent), "ServiceEntry " + key.String() + " has no such port"}
		return result
	}
	result.found = []attachment{{hosts: entry.Spec.GetHosts(), namespace: key.Namespace, port: port}}
	return result
}
