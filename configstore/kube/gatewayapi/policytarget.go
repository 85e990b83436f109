// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"slices"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// target is a target of BackendTLSPolicies: a Service or a ServiceEntry.
type target struct {
	kind string
	Key
}

// node returns the result of the target's policies.
func (t target) node() node { return node{nodePolicies, Kind(t.kind), t.Key} }

// parent returns the target as the ancestor of a policy.
func (t target) parent() gatewayv1.ParentReference {
	group := ""
	if t.kind == kindServiceEntry {
		group = groupIstio
	}
	return gatewayv1.ParentReference{
		Group: new(gatewayv1.Group(group)), Kind: new(gatewayv1.Kind(t.kind)), Name: gatewayv1.ObjectName(t.Name),
	}
}

// is reports whether a reference of a policy refers to the target, which is in the policy's
// namespace.
func (t target) is(ref *gatewayv1.LocalPolicyTargetReferenceWithSectionName) bool {
	return isTarget(ref) && string(ref.Kind) == t.kind && string(ref.Name) == t.Name
}

// isTarget reports whether a policy supports a target of this kind.
func isTarget(ref *gatewayv1.LocalPolicyTargetReferenceWithSectionName) bool {
	return ref.Group == "" && ref.Kind == kindService || ref.Group == groupIstio && ref.Kind == kindServiceEntry
}

// targets returns the Services and ServiceEntries of a policy, which may be nil.
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

// sections returns the names of the ports of a target that a policy selects; "" selects all ports.
func sections(o *gatewayv1.BackendTLSPolicy, t target) []string {
	var out []string
	for i := range o.Spec.TargetRefs {
		if ref := &o.Spec.TargetRefs[i]; t.is(ref) {
			out = append(out, string(deref(ref.SectionName, "")))
		}
	}
	return out
}

// unsupported returns the ancestors for the targets that a policy does not support.
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

// backend contains the relevant fields of a target.
type backend struct {
	// configs contains the names of the DestinationRules by host.
	configs map[string]Key
	// portNamed returns the number of a port.
	portNamed func(name string) (number int32, ok bool)
}

// backendOf returns nil if the target does not exist.
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
