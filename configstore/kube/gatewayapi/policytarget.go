// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"slices"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// target is what BackendTLSPolicies can be for: a Service or a ServiceEntry.
type target struct {
	kind string
	Key
}

// node is the result that the policies of a target come to.
func (t target) node() node { return node{nodePolicies, Kind(t.kind), t.Key} }

// parent is the target as the ancestor of a policy.
func (t target) parent() gatewayv1.ParentReference {
	group := ""
	if t.kind == kindServiceEntry {
		group = groupIstio
	}
	return gatewayv1.ParentReference{
		Group: new(gatewayv1.Group(group)), Kind: new(gatewayv1.Kind(t.kind)), Name: gatewayv1.ObjectName(t.Name),
	}
}

// is reports whether a reference of a policy is to the target, whose namespace is that of the policy.
func (t target) is(ref *gatewayv1.LocalPolicyTargetReferenceWithSectionName) bool {
	return isTarget(ref) && string(ref.Kind) == t.kind && string(ref.Name) == t.Name
}

// isTarget reports whether a policy can be for an object of a kind.
func isTarget(ref *gatewayv1.LocalPolicyTargetReferenceWithSectionName) bool {
	return ref.Group == "" && ref.Kind == kindService || ref.Group == groupIstio && ref.Kind == kindServiceEntry
}

// targets are the Services and ServiceEntries that a policy, which may be nil, is for.
func targets(o *gatewayv1.BackendTLSPolicy) []target {
	if o == nil {
		return nil
	}
	var out []target
	for i := range o.Spec.TargetRefs {
		ref := &o.Spec.TargetRefs[i]
		t := target{string(ref.Kind), Key{o.Namespace, string(ref.Name)}}
		if isTarget(ref) && !slices.Contains(out, t) {
			out = append(out, t)
		}
	}
	return out
}

// sections are the ports of a target, by name, that a policy is for; "": all.
func sections(o *gatewayv1.BackendTLSPolicy, t target) []string {
	var out []string
	for i := range o.Spec.TargetRefs {
		if ref := &o.Spec.TargetRefs[i]; t.is(ref) {
			out = append(out, string(deref(ref.SectionName, "")))
		}
	}
	return out
}

// unsupported are the ancestors that stand for what a policy cannot be for.
func unsupported(o *gatewayv1.BackendTLSPolicy) []ancestor {
	var out []ancestor
	for i := range o.Spec.TargetRefs {
		ref := &o.Spec.TargetRefs[i]
		if isTarget(ref) {
			continue
		}
		parent := gatewayv1.ParentReference{Group: &ref.Group, Kind: &ref.Kind, Name: ref.Name}
		wrong := problem{string(gatewayv1.PolicyReasonInvalid), "a BackendTLSPolicy cannot be for a " + string(ref.Kind)}
		if !slices.ContainsFunc(out, func(a ancestor) bool { return sameParent(a.ref, parent) }) {
			out = append(out, ancestor{meshController, parent, verdict{unaccepted: wrong}})
		}
	}
	return out
}

// backend is what counts of a target.
type backend struct {
	// configs are the names of the DestinationRules of its hosts.
	configs map[string]Key
	// portNamed returns the number of a port.
	portNamed func(name string) (number int32, ok bool)
}

// backendOf returns nil if there is no such object.
func (v view) backendOf(t target) *backend {
	if t.kind == kindService {
		s := v.service(t.Key)
		if s == nil {
			return nil
		}
		config := Key{t.Namespace, t.Name + "~" + infix}
		return &backend{map[string]Key{v.c.serviceHost(t.Key): config}, s.portNamed}
	}
	entry := v.serviceEntry(t.Key)
	if entry == nil {
		return nil
	}
	b := &backend{configs: map[string]Key{}, portNamed: entry.portNamed}
	for _, host := range entry.Spec.GetHosts() {
		b.configs[host] = Key{t.Namespace, entryConfig(t.Name, host)}
	}
	return b
}
