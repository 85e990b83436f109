// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// ruleReasons is G35: of several references that cannot be resolved any may determine the reason.
func (c *comparison) ruleReasons() {
	reasons := []string{"RefNotPermitted", "BackendNotFound", reasonInvalidDestination, "InvalidKind", reasonInvalidFilter}
	for id, status := range c.want.statuses {
		theirs, ours := each(status["parents"]), each(c.got.statuses[id]["parents"])
		kind, rest, _ := strings.Cut(id, "/")
		ns, name, _ := strings.Cut(rest, "/")
		if len(theirs) != len(ours) || c.references(objectRef{kind, ns, name}) < 2 {
			continue
		}
		for i := range theirs {
			a, b := strings.Fields(fmt.Sprint(conditionsOf(theirs[i])[resolvedRefs])), strings.Fields(fmt.Sprint(conditionsOf(ours[i])[resolvedRefs]))
			if len(a) == 3 && len(b) == 3 && a[0] == "False" && b[0] == "False" && slices.Contains(reasons, a[1]) && slices.Contains(reasons, b[1]) {
				conditionsOf(theirs[i])[resolvedRefs] = a[0] + " " + b[1] + " " + a[2]
			}
		}
	}
}

// references returns the number of backends and mirrors that a route references.
func (c *comparison) references(ref objectRef) int {
	n := 0
	switch o := c.read[ref].(type) {
	case *gatewayv1.TLSRoute:
		for _, rule := range o.Spec.Rules {
			n += len(rule.BackendRefs)
		}
	case *gatewayv1.TCPRoute:
		for _, rule := range o.Spec.Rules {
			n += len(rule.BackendRefs)
		}
	default:
		for _, r := range c.httpRoutes() {
			if string(r.kind) == ref.Kind && r.key() == (Key{ref.Namespace, ref.Name}) {
				for _, rule := range r.rules {
					n += len(rule.backends) + len(rule.filters)
				}
			}
		}
	}
	return n
}

// ruleServicePorts is G51: a parentRef with a port that the Service does not have does not match.
func (c *comparison) ruleServicePorts() {
	for id, status := range c.want.statuses {
		rest := strings.Split(id, "/")
		for _, parent := range each(status["parents"]) {
			ref, _ := parent["parentRef"].(map[string]any)
			port, hasPort := ref["port"].(float64)
			ns := text(ref, "namespace")
			if ns == "" {
				ns = rest[1]
			}
			key := Key{ns, text(ref, "name")}
			s := c.converter.services[key]
			if text(ref, "kind") != kindService || !hasPort || s == nil {
				continue
			}
			if _, has := s.ports[int32(port)]; has || !is(conditionsOf(parent), accepted, "True") {
				continue
			}
			fields := strings.Fields(fmt.Sprint(conditionsOf(parent)[accepted]))
			conditionsOf(parent)[accepted] = "False NoMatchingParent " + fields[2]
			for vs, v := range c.want.virtualServices {
				hosts := fmt.Sprint(dig(v, "spec", "hosts"))
				inPort := regexp.MustCompile(fmt.Sprint(`port:`, port, `\b`)).MatchString(fmt.Sprint(dig(v, "spec")))
				if strings.Contains(fmt.Sprint(dig(v, "spec", "gateways")), "mesh") && inPort &&
					hosts == "["+c.converter.serviceHost(key)+"]" && c.hasParent(v, rest[0]+"/"+rest[2]+"."+rest[1]) {
					delete(c.want.virtualServices, vs)
				}
			}
		}
	}
}

// ruleConsumers is G50: the VirtualServices of consumer routes apply to their own namespace.
func (c *comparison) ruleConsumers() {
	for _, v := range c.want.virtualServices {
		spec, _ := v["spec"].(map[string]any)
		hosts, _ := spec["hosts"].([]any)
		if fmt.Sprint(spec["gateways"]) != "[mesh]" || spec["exportTo"] != nil {
			continue
		}
		for _, host := range hosts {
			if service, is := c.converter.serviceOfHost(fmt.Sprint(host)); is && service.Namespace != v["namespace"] {
				spec["exportTo"] = []any{"."}
			}
		}
	}
}

// ruleServerNames is G31: hosts of TLSRoutes that a more specific listener serves are routed only
// there.
func (c *comparison) ruleServerNames() {
	for _, o := range objects[*gatewayv1.Gateway](c.system) {
		for _, l := range o.Spec.Listeners {
			own := gatewayID(parentKey{KindGateway, keyOf(o)}, string(l.Name))
			taken := func(host any) bool {
				return slices.ContainsFunc(o.Spec.Listeners, func(other gatewayv1.Listener) bool {
					a, b := hostOf(string(deref(l.Hostname, ""))), hostOf(string(deref(other.Hostname, "")))
					return other.Name != l.Name && other.Port == l.Port && other.Protocol == l.Protocol && a != b && within(b, a) && within(fmt.Sprint(host), b)
				})
			}
			for id, v := range c.want.virtualServices {
				if dig(v, "spec", "tls") == nil || fmt.Sprint(dig(v, "spec", "gateways")) != "["+own+"]" {
					continue
				}
				spec := v["spec"].(map[string]any)
				hosts := slices.DeleteFunc(spec["hosts"].([]any), taken)
				if spec["hosts"] = hosts; len(hosts) == 0 {
					delete(c.want.virtualServices, id)
				}
				for _, route := range each(spec["tls"]) {
					for _, match := range each(route["match"]) {
						match["sniHosts"] = slices.DeleteFunc(match["sniHosts"].([]any), taken)
					}
				}
			}
		}
	}
}

// rulePolicies is G54 and G55.
func (c *comparison) rulePolicies() {
	policies := objects[*gatewayv1.BackendTLSPolicy](c.system)
	for _, o := range policies {
		status := c.want.statuses[statusID(KindBackendTLSPolicy, keyOf(o))]
		for _, entry := range each(status["ancestors"]) {
			ref := entry["ancestorRef"].(map[string]any)
			if text(ref, "kind") == string(KindGateway) && text(ref, "namespace") == "" {
				for _, g := range objects[*gatewayv1.Gateway](c.system) {
					if g.Name == text(ref, "name") && g.Namespace != o.Namespace {
						ref["namespace"] = g.Namespace
					}
				}
			}
			if text(ref, "kind") == string(KindGateway) || text(ref, "kind") == kindService {
				if c.loses(o, policies) {
					conditionsOf(entry)[accepted] = fmt.Sprint("False Conflicted ", o.Generation)
				}
			}
		}
	}
}

// loses reports whether an older policy applies to the same targets.
func (c *comparison) loses(o *gatewayv1.BackendTLSPolicy, policies []*gatewayv1.BackendTLSPolicy) bool {
	return slices.ContainsFunc(policies, func(other *gatewayv1.BackendTLSPolicy) bool {
		older := other.CreationTimestamp.Before(&o.CreationTimestamp) ||
			other.CreationTimestamp.Equal(&o.CreationTimestamp) && keyOf(other).Compare(keyOf(o)) < 0
		return older && other.Namespace == o.Namespace && fmt.Sprint(targets(other)) == fmt.Sprint(targets(o)) &&
			fmt.Sprint(sections(other, targets(o)[0])) == fmt.Sprint(sections(o, targets(o)[0]))
	})
}
