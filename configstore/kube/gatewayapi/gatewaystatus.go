// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// maxAddresses is the maximum number of addresses in the status of a Gateway: a load balancer may have one for
// each node of a cluster.
const maxAddresses = 16

// computeGatewayStatus recomputes the status of a Gateway. It is separate from the listeners,
// because a route that attaches only changes the status.
func (c *Converter) computeGatewayStatus(n node) {
	v := view{c, n}
	o, state := c.gateways[n.key], c.gatewayStates[n.key]
	if o == nil || state == nil {
		c.publishStatus(KindGateway, n.key, nil)
		return
	}
	status := &gatewayv1.GatewayStatus{}
	if state.ownership == remote {
		for _, address := range o.Spec.Addresses {
			status.Addresses = append(status.Addresses, gatewayv1.GatewayStatusAddress(address))
		}
		status.Conditions = renew(o.Status.Conditions, o.Generation, []string{resolvedRefs, insecureFrontend},
			good(accepted, "the Gateway is accepted"), good(programmed, "another controller runs the Gateway"))
		c.publishStatus(KindGateway, n.key, status)
		return
	}
	ports := portsOf(state.listeners)
	addresses, unprogrammed := v.reached(n.key, o.Annotations[annotationAddressType], state.services, ports)
	status.Addresses = addresses[:min(len(addresses), maxAddresses)]
	if n := c.acceptedSets(state); n > 0 {
		status.AttachedListenerSets = &n
	}
	if len(ports) == 0 && len(state.listeners) > 0 {
		unprogrammed = unprogrammed.or(problem{string(gatewayv1.GatewayReasonInvalid), "no listener works"})
	}
	conditions := []metav1.Condition{
		gatewayAccepted(state, v.unsupported(n.key)), goodUnless(programmed, "the Gateway has addresses", unprogrammed),
		goodUnless(resolvedRefs, "all references are resolved", state.noRefs),
	}
	if isInsecure(o, state) {
		conditions = append(conditions, metav1.Condition{
			Type: insecureFrontend, Status: metav1.ConditionTrue, Reason: string(gatewayv1.GatewayReasonConfigurationChanged),
			Message: "clients without a valid certificate are let in",
		})
	}
	status.Conditions = renew(o.Status.Conditions, o.Generation, []string{insecureFrontend}, conditions...)
	for _, l := range state.listeners {
		i := slices.IndexFunc(o.Status.Listeners, func(s gatewayv1.ListenerStatus) bool { return string(s.Name) == l.view.Section })
		had := gatewayv1.ListenerStatus{}
		if i >= 0 {
			had = o.Status.Listeners[i]
		}
		status.Listeners = append(status.Listeners, c.listenerStatus(l, o.Generation, had))
	}
	c.publishStatus(KindGateway, n.key, status)
}

// acceptedSets returns the number of accepted ListenerSets.
func (c *Converter) acceptedSets(state *gatewayState) int32 {
	var n int32
	for _, key := range state.sets {
		if len(portsOf(c.setStates[key].listeners)) > 0 {
			n++
		}
	}
	return n
}

// gatewayAccepted returns the condition Accepted of a Gateway. Invalid listeners
// make it false if no listener is valid.
func gatewayAccepted(state *gatewayState, unsupported problem) metav1.Condition {
	if wrong := state.badParameters.or(state.badAddresses).or(unsupported); wrong.is() {
		return goodUnless(accepted, "", wrong)
	}
	working := 0
	for _, l := range state.listeners {
		if l.works() {
			working++
		}
	}
	notValid := string(gatewayv1.GatewayReasonListenersNotValid)
	switch {
	case working == len(state.listeners):
		return good(accepted, "the Gateway is accepted")
	case working == 0:
		return goodUnless(accepted, "", problem{notValid, "no listener is valid"})
	default:
		condition := good(accepted, "some listeners are not valid")
		condition.Reason = notValid
		return condition
	}
}

// isInsecure reports whether some port admits clients that fail validation.
func isInsecure(o *gatewayv1.Gateway, state *gatewayState) bool {
	return slices.ContainsFunc(state.listeners, func(l *listener) bool {
		validation := frontendValidation(o, l.view.Port)
		return l.spec.Protocol == gatewayv1.HTTPSProtocolType && validation != nil && validation.Mode == gatewayv1.AllowInsecureFallback
	})
}

// listenerStatus returns the status of a listener of a Gateway or a ListenerSet.
func (c *Converter) listenerStatus(l *listener, generation int64, had gatewayv1.ListenerStatus) gatewayv1.ListenerStatus {
	status := gatewayv1.ListenerStatus{
		Name: l.spec.Name, SupportedKinds: []gatewayv1.RouteGroupKind{},
		AttachedRoutes: int32(c.attached[l.owner][l.view.Section]), //nolint:gosec // far fewer
	}
	for _, kind := range l.view.Kinds {
		status.SupportedKinds = append(status.SupportedKinds, gatewayv1.RouteGroupKind{
			Group: new(gatewayv1.Group(gatewayv1.GroupName)), Kind: gatewayv1.Kind(kind),
		})
	}
	failure := l.failure()
	switch {
	case l.conflict.is():
		status.Conditions = renew(had.Conditions, generation, []string{resolvedRefs},
			goodUnless(accepted, "", failure), goodUnless(programmed, "", failure),
			metav1.Condition{Type: conflicted, Status: metav1.ConditionTrue, Reason: failure.reason, Message: failure.message})
		return status
	case failure.is():
		failure.reason = string(gatewayv1.ListenerReasonInvalid)
	}
	status.Conditions = renew(had.Conditions, generation, nil,
		goodUnless(accepted, "the listener is accepted", l.unsupported.or(l.unaccepted)),
		metav1.Condition{
			Type: conflicted, Status: metav1.ConditionFalse, Reason: string(gatewayv1.ListenerReasonNoConflicts), Message: "there is no conflict",
		},
		goodUnless(programmed, "the listener is configured", failure.or(c.refusals.ofListener(l))),
		goodUnless(resolvedRefs, "all references are resolved", l.noRefs.or(l.badKinds)))
	return status
}

// computeListenerSetStatus recomputes the status of a ListenerSet. Without a
// Gateway of this controller the ListenerSet has no status.
func (c *Converter) computeListenerSetStatus(n node) {
	v := view{c, n}
	o, state := c.listenerSets[n.key], c.setStates[n.key]
	if o == nil || state == nil {
		c.publishStatus(KindListenerSet, n.key, nil)
		return
	}
	status := &gatewayv1.ListenerSetStatus{}
	gateway := c.gatewayStates[state.gateway]
	ports := portsOf(state.listeners)
	unaccepted := state.notAllowed
	if len(ports) == 0 {
		unaccepted = unaccepted.or(problem{string(gatewayv1.ListenerSetReasonListenersNotValid), "no listener is valid"})
	}
	unprogrammed := unaccepted
	if !unaccepted.is() {
		_, unprogrammed = v.reached(state.gateway, "", gateway.services, ports)
	}
	status.Conditions = renew(o.Status.Conditions, o.Generation, nil,
		goodUnless(accepted, "the ListenerSet is accepted", unaccepted),
		goodUnless(programmed, "the listeners have addresses", unprogrammed))
	for _, l := range state.listeners {
		i := slices.IndexFunc(o.Status.Listeners, func(s gatewayv1.ListenerEntryStatus) bool { return string(s.Name) == l.view.Section })
		had := gatewayv1.ListenerStatus{}
		if i >= 0 {
			had = gatewayv1.ListenerStatus(o.Status.Listeners[i])
		}
		status.Listeners = append(status.Listeners, gatewayv1.ListenerEntryStatus(c.listenerStatus(l, o.Generation, had)))
	}
	c.publishStatus(KindListenerSet, n.key, status)
}
