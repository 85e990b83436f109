// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// comparison contains a recorded state and ours before they are compared. The rules of DECISIONS.md
// change the recorded state into the right one. If the recording does not determine the right
// state, they remove a part from both states and check ours directly.
type comparison struct {
	*system

	want, got *state
	wrong     []string
	altered   map[parentKey]bool // the Gateways with a listener that a rule has changed
}

func (c *comparison) fail(rule, format string, args ...any) {
	c.wrong = append(c.wrong, rule+": "+fmt.Sprintf(format, args...))
}

// decide applies the rules. Their order matters: first listeners, then their routes.
func decide(s *system, want, got *state) []string {
	c := &comparison{system: s, want: want, got: got, altered: map[parentKey]bool{}}
	for _, gateway := range objects[*gatewayv1.Gateway](s) {
		c.ruleConflicts(gateway)
		for i := range gateway.Spec.Listeners {
			c.ruleListener(parentKey{KindGateway, keyOf(gateway)}, gateway, &gateway.Spec.Listeners[i])
		}
		c.recountGateway(gateway)
		c.ruleAddresses(gateway)
		c.ruleListenerSetCount(gateway)
	}
	for _, set := range objects[*gatewayv1.ListenerSet](s) {
		for i := range set.Spec.Listeners {
			l := gatewayv1.Listener(set.Spec.Listeners[i])
			c.ruleSetConflict(set, &l)
			c.ruleListener(parentKey{KindListenerSet, keyOf(set)}, set, &l)
		}
		c.ruleNamesakeOfGateway(set)
	}
	for at, stale := range s.stale {
		if stale {
			c.forgetListener(at)
		}
	}
	c.ruleRoutes()
	c.ruleConsumers()
	c.rulePolicies()
	for _, st := range []*state{want, got} {
		st.ruleUnreachable()
	}
	return c.wrong
}

// objects returns the objects of a type, by name.
func objects[T metav1.Object](s *system) []T {
	var out []T
	for _, object := range s.read {
		if o, ok := object.(T); ok {
			out = append(out, o)
		}
	}
	slices.SortFunc(out, func(a, b T) int { return keyOf(a).Compare(keyOf(b)) })
	return out
}

func statusID(kind Kind, key Key) string { return string(kind) + "/" + key.String() }

func gatewayID(of parentKey, section string) string {
	return of.Namespace + "/" + string(of.Kind) + "/" + of.Name + "/" + section + "." + of.Namespace
}

// listenerOf returns the status of a listener in a state.
func (s *state) listenerOf(of parentKey, section string) map[string]any {
	for _, l := range each(s.statuses[statusID(of.Kind, of.Key)]["listeners"]) {
		if l["name"] == section {
			return l
		}
	}
	return nil
}

func conditionsOf(m map[string]any) map[string]any {
	conditions, _ := m["conditions"].(map[string]any)
	return conditions
}

func is(conditions map[string]any, kind, prefix string) bool {
	return strings.HasPrefix(fmt.Sprint(conditions[kind]), prefix)
}

// ruleConflicts is G2 and G3: within a Gateway all listeners of a conflict lose, and HTTP conflicts
// with HTTPS.
func (c *comparison) ruleConflicts(o *gatewayv1.Gateway) {
	owner := parentKey{KindGateway, keyOf(o)}
	for i := range o.Spec.Listeners {
		reason := conflictOf(o, i)
		l := &o.Spec.Listeners[i]
		status := c.want.listenerOf(owner, string(l.Name))
		if reason == "" || status == nil {
			continue
		}
		c.altered[owner] = true
		delete(c.want.gateways, gatewayID(owner, string(l.Name)))
		status["attachedRoutes"] = float64(0)
		status["conditions"] = map[string]any{
			accepted: fmt.Sprint("False ", reason, " ", o.Generation), programmed: fmt.Sprint("False ", reason, " ", o.Generation),
			conflicted: fmt.Sprint("True ", reason, " ", o.Generation),
		}
		c.forgetAcceptance(listenerKey{owner, string(l.Name)}, l.Port)
	}
}

// ruleSetConflict is G3 for a listener of a ListenerSet: HTTP conflicts with HTTPS of an earlier
// listener, in the recording only for equal hostnames.
func (c *comparison) ruleSetConflict(set *gatewayv1.ListenerSet, l *gatewayv1.Listener) {
	owner := parentKey{KindListenerSet, keyOf(set)}
	status := c.want.listenerOf(owner, string(l.Name))
	if status == nil || is(conditionsOf(status), conflicted, "True") || !c.mixed(set, l) {
		return
	}
	delete(c.want.gateways, gatewayID(owner, string(l.Name)))
	if got := c.got.listenerOf(owner, string(l.Name)); !is(conditionsOf(got), conflicted, "True ProtocolConflict") {
		c.fail("G3", "%s/%s is not in conflict: %v", set.Name, l.Name, got)
	}
	for _, st := range []*state{c.want, c.got} {
		delete(st.listenerOf(owner, string(l.Name)), "conditions")
		delete(st.statuses[statusID(KindListenerSet, keyOf(set))], "conditions")
	}
	c.forgetListener(listenerKey{owner, string(l.Name)})
}

// mixed reports whether a listener of a ListenerSet has HTTP on a port of an earlier HTTPS
// listener, or the reverse.
func (c *comparison) mixed(set *gatewayv1.ListenerSet, l *gatewayv1.Listener) bool {
	clashes := func(port int32, protocol gatewayv1.ProtocolType) bool {
		return port == l.Port && (protocol == "HTTP" && l.Protocol == "HTTPS" || protocol == "HTTPS" && l.Protocol == "HTTP")
	}
	gateway, ok := c.read[objectRef{string(KindGateway), gatewayOfSet(set).Namespace, gatewayOfSet(set).Name}].(*gatewayv1.Gateway)
	if ok && slices.ContainsFunc(gateway.Spec.Listeners, func(g gatewayv1.Listener) bool { return clashes(g.Port, g.Protocol) }) {
		return true
	}
	for _, other := range objects[*gatewayv1.ListenerSet](c.system) {
		earlier := other.CreationTimestamp.Before(&set.CreationTimestamp) ||
			other.CreationTimestamp.Equal(&set.CreationTimestamp) && keyOf(other).Compare(keyOf(set)) < 0
		if earlier && gatewayOfSet(other) == gatewayOfSet(set) &&
			slices.ContainsFunc(other.Spec.Listeners, func(e gatewayv1.ListenerEntry) bool { return clashes(e.Port, e.Protocol) }) {
			return true
		}
	}
	return false
}

// conflictOf returns the reason of the conflict of a listener, or "".
func conflictOf(o *gatewayv1.Gateway, i int) (reason string) {
	a := &o.Spec.Listeners[i]
	secure := func(p gatewayv1.ProtocolType) gatewayv1.ProtocolType {
		if p == "HTTPS" {
			return "TLS"
		}
		return p
	}
	supported := func(p gatewayv1.ProtocolType) bool {
		return slices.Contains([]gatewayv1.ProtocolType{"HTTP", "TLS", "TCP"}, secure(p))
	}
	for j := range o.Spec.Listeners {
		b := &o.Spec.Listeners[j]
		switch {
		case i == j, a.Port != b.Port, !supported(a.Protocol), !supported(b.Protocol):
		case secure(a.Protocol) != secure(b.Protocol):
			return "ProtocolConflict"
		case deref(a.Hostname, "") == deref(b.Hostname, ""):
			reason = "HostnameConflict"
		}
	}
	return reason
}

// ruleListener is G4 to G7 and G9.
func (c *comparison) ruleListener(owner parentKey, o metav1.Object, l *gatewayv1.Listener) {
	status := conditionsOf(c.want.listenerOf(owner, string(l.Name)))
	if status == nil || is(status, conflicted, "True") || c.got.listenerOf(owner, string(l.Name)) == nil {
		return
	}
	generation := o.GetGeneration()
	invalid := fmt.Sprint("False Invalid ", generation)
	secure := l.Protocol == gatewayv1.HTTPSProtocolType || l.Protocol == gatewayv1.TLSProtocolType
	switch {
	case is(status, accepted, "False UnsupportedProtocol"): // G4
		c.altered[owner] = true
		status[programmed] = invalid
	case secure && l.TLS == nil: // G5
		c.altered[owner] = true
		delete(c.want.gateways, gatewayID(owner, string(l.Name)))
		status[programmed] = invalid
	case secure && len(l.TLS.CertificateRefs) > 0:
		var usable []any
		reason := ""
		for _, ref := range l.TLS.CertificateRefs {
			name, why := c.certificateOf(owner, ref)
			if reason == "" {
				reason = why
			}
			if why == "" {
				usable = append(usable, name)
			}
		}
		if reason == "RefNotPermitted" && is(status, accepted, "False NoValidCACertificate") && len(usable) == 0 { // G9
			status[accepted] = fmt.Sprint("True Accepted ", generation)
		}
		if reason != "" && len(usable) == 1 && len(l.TLS.CertificateRefs) == 2 { // G6, G7
			status[resolvedRefs] = fmt.Sprint("False ", reason, " ", generation)
			for _, server := range each(dig(c.want.gateways[gatewayID(owner, string(l.Name))], "spec", "servers")) {
				server["tls"].(map[string]any)["credentialName"] = usable[0]
			}
		}
	}
}

// certificateOf returns the credential of a certificateRef, or the reason why it cannot be used.
func (c *comparison) certificateOf(owner parentKey, ref gatewayv1.SecretObjectReference) (name, why string) {
	key := Key{namespaceOf(ref.Namespace, owner.Namespace), string(ref.Name)}
	if kindOf(ref.Kind, "Secret") != "Secret" || groupOf(ref.Group, "") != "" {
		return "", "InvalidCertificateRef"
	}
	granted := key.Namespace == owner.Namespace
	for _, g := range objects[*gatewayv1.ReferenceGrant](c.system) {
		granted = granted || g.Namespace == key.Namespace && grants(g,
			reference{gatewayv1.GroupName, string(owner.Kind), owner.Namespace, ""}, reference{"", "Secret", key.Namespace, key.Name})
	}
	if !granted {
		return "", "RefNotPermitted"
	}
	if c.read[objectRef{"Secret", key.Namespace, key.Name}] == nil {
		return "", "InvalidCertificateRef"
	}
	return "kubernetes-gateway://" + key.String(), ""
}

// recountGateway derives Accepted of a Gateway from its listeners, after the rules.
func (c *comparison) recountGateway(o *gatewayv1.Gateway) {
	status := c.want.statuses[statusID(KindGateway, keyOf(o))]
	conditions := conditionsOf(status)
	if !c.altered[parentKey{KindGateway, keyOf(o)}] || conditions == nil || status["listeners"] == nil || is(conditions, accepted, "False InvalidParameters") ||
		is(conditions, accepted, "False UnsupportedAddress") || is(conditions, accepted, "Unknown") {
		return
	}
	good, all := 0, 0
	generation := ""
	for _, l := range each(status["listeners"]) {
		all++
		if is(conditionsOf(l), programmed, "True") {
			good++
		}
		fields := strings.Fields(fmt.Sprint(conditionsOf(l)[programmed]))
		generation = fields[len(fields)-1]
	}
	switch good {
	case all:
		conditions[accepted] = "True Accepted " + generation
	case 0:
		conditions[accepted] = "False ListenersNotValid " + generation
	default:
		conditions[accepted] = "True ListenersNotValid " + generation
	}
}

// ruleAddresses is G13: addresses that become unusable are removed.
func (c *comparison) ruleAddresses(o *gatewayv1.Gateway) {
	id := statusID(KindGateway, keyOf(o))
	want, got := c.want.statuses[id], c.got.statuses[id]
	if want == nil || got == nil {
		return
	}
	recorded, _ := want["addresses"].([]any)
	ours, _ := got["addresses"].([]any)
	if len(ours) >= len(recorded) {
		return
	}
	for _, address := range ours {
		if !slices.Contains(recorded, address) {
			c.fail("G13", "%s has the address %v", id, address)
		}
	}
	name := o.Name + "-" + string(o.Spec.GatewayClassName)
	if len(ours) > 0 && c.read[objectRef{"Service", o.Namespace, name}] == nil && len(o.Spec.Addresses) == 0 &&
		len(o.Annotations) == 0 {
		c.fail("G13", "%s has addresses without a Service", id)
	}
	delete(want, "addresses")
	delete(got, "addresses")
}

// ruleListenerSetCount: attachedListenerSets is optional, and in the recording it stays when the
// last ListenerSet is deleted. Ours is the number of accepted ListenerSets.
func (c *comparison) ruleListenerSetCount(o *gatewayv1.Gateway) {
	id := statusID(KindGateway, keyOf(o))
	var n float64
	for _, set := range objects[*gatewayv1.ListenerSet](c.system) {
		if gatewayOfSet(set) == keyOf(o) && is(conditionsOf(c.got.statuses[statusID(KindListenerSet, keyOf(set))]), accepted, "True") {
			n++
		}
	}
	if got := c.got.statuses[id]; got != nil {
		if count, _ := got["attachedListenerSets"].(float64); count != n {
			c.fail("attachedListenerSets", "%s has %v, want %v", id, count, n)
		}
		delete(got, "attachedListenerSets")
	}
	delete(c.want.statuses[id], "attachedListenerSets")
}

// ruleNamesakeOfGateway is G21: a ListenerSet and a Gateway of one name both have configs.
func (c *comparison) ruleNamesakeOfGateway(set *gatewayv1.ListenerSet) {
	gateway, ok := c.read[objectRef{string(KindGateway), set.Namespace, set.Name}].(*gatewayv1.Gateway)
	if !ok {
		return
	}
	for _, l := range set.Spec.Listeners {
		if !slices.ContainsFunc(gateway.Spec.Listeners, func(g gatewayv1.Listener) bool { return g.Name == l.Name }) {
			continue
		}
		for _, kind := range []Kind{KindGateway, KindListenerSet} {
			at := listenerKey{parentKey{kind, keyOf(set)}, string(l.Name)}
			id := gatewayID(at.parent, at.section)
			if is(conditionsOf(c.got.listenerOf(at.parent, at.section)), programmed, "True") && c.got.gateways[id] == nil {
				c.fail("G21", "%s has no config", id)
			}
			delete(c.want.gateways, id)
			delete(c.got.gateways, id)
			c.forgetListener(at)
		}
	}
}

// forgetListener removes the routes of a listener from both states. Ours is still compared with a
// fresh start.
func (c *comparison) forgetListener(at listenerKey) {
	port := int32(0)
	for _, object := range c.read {
		for _, l := range listenersIn(object) {
			if keyOf(object) == at.parent.Key && string(l.Name) == at.section {
				port = l.Port
			}
		}
	}
	for _, st := range []*state{c.want, c.got} {
		if l := st.listenerOf(at.parent, at.section); l != nil {
			delete(l, "attachedRoutes")
		}
		for id, v := range st.virtualServices {
			gateways, _ := dig(v, "spec", "gateways").([]any)
			own := gatewayID(at.parent, at.section)
			other := gatewayID(parentKey{map[Kind]Kind{KindGateway: KindListenerSet, KindListenerSet: KindGateway}[at.parent.Kind], at.parent.Key}, at.section)
			if slices.Contains(gateways, any(own)) || slices.Contains(gateways, any(other)) && c.namesakesOfGateways(at) {
				delete(st.virtualServices, id)
			}
		}
	}
	c.forgetAcceptance(at, port)
}

// namesakesOfGateways reports whether a Gateway and a ListenerSet share a name.
func (c *comparison) namesakesOfGateways(at listenerKey) bool {
	return c.read[objectRef{string(KindGateway), at.parent.Namespace, at.parent.Name}] != nil &&
		c.read[objectRef{string(KindListenerSet), at.parent.Namespace, at.parent.Name}] != nil
}

// forgetAcceptance removes whether routes are accepted by a parentRef to a listener.
func (c *comparison) forgetAcceptance(at listenerKey, port int32) {
	for _, st := range []*state{c.want, c.got} {
		for id, status := range st.statuses {
			ns := strings.Split(id, "/")[1]
			var left []map[string]any
			for _, parent := range each(status["parents"]) {
				ref, _ := parent["parentRef"].(map[string]any)
				section, hasSection := ref["sectionName"]
				p, hasPort := ref["port"].(float64)
				of := text(ref, "namespace")
				if of == "" {
					of = ns
				}
				if cmp.Or(text(ref, "kind"), string(KindGateway)) == string(at.parent.Kind) && text(ref, "name") == at.parent.Name && of == at.parent.Namespace &&
					(!hasSection || section == at.section) && (!hasPort || int32(p) == port) {
					delete(conditionsOf(parent), accepted)
					delete(conditionsOf(parent), resolvedRefs)
					if at.parent.Kind == KindListenerSet || c.namesakesOfGateways(at) {
						continue
					}
				}
				left = append(left, parent)
			}
			if status["parents"] != nil {
				if status["parents"] = left; len(left) == 0 {
					delete(st.statuses, id)
				}
			}
		}
	}
}

// ruleUnreachable is G10 and G29: hosts that no server of the Gateways has may be missing, and so
// may VirtualServices whose Gateways have no config.
func (s *state) ruleUnreachable() {
	for id, v := range s.virtualServices {
		gateways, _ := dig(v, "spec", "gateways").([]any)
		if len(gateways) != 1 || gateways[0] == "mesh" {
			continue
		}
		servers := each(dig(s.gateways[fmt.Sprint(gateways[0])], "spec", "servers"))
		hosts, _ := dig(v, "spec", "hosts").([]any)
		reachable := slices.ContainsFunc(hosts, func(h any) bool {
			return slices.ContainsFunc(servers, func(server map[string]any) bool {
				list, _ := server["hosts"].([]any)
				return slices.ContainsFunc(list, func(of any) bool {
					_, host, _ := strings.Cut(fmt.Sprint(of), "/")
					return overlap(fmt.Sprint(h), host)
				})
			})
		})
		if !reachable {
			delete(s.virtualServices, id)
		}
	}
}
