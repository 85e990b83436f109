// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"maps"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/pilotkit/pilotkit/configstore/istio"
)

// invalidCredential is of no certificate: connections with it fail.
const invalidCredential = "invalid://"

// maxAncestors is how many entries the status of a policy may have.
const maxAncestors = 16

// policyState is what has become of the BackendTLSPolicies of a Service.
type policyState struct{ verdicts map[Key]verdict }

// verdict is what is wrong with a policy.
type verdict struct{ unaccepted, noRefs problem }

// targetServices are the Services that a policy is for. Other kinds are not supported.
func targetServices(o *gatewayv1.BackendTLSPolicy) []Key {
	var out []Key
	if o == nil {
		return nil
	}
	for i := range o.Spec.TargetRefs {
		ref := &o.Spec.TargetRefs[i]
		key := Key{o.Namespace, string(ref.Name)}
		if ref.Group == "" && ref.Kind == kindService && !slices.Contains(out, key) {
			out = append(out, key)
		}
	}
	return out
}

// sections are the ports of a Service, by name, that a policy is for; "": all.
func sections(o *gatewayv1.BackendTLSPolicy, target Key) []string {
	var out []string
	for i := range o.Spec.TargetRefs {
		ref := &o.Spec.TargetRefs[i]
		if ref.Group == "" && ref.Kind == kindService && string(ref.Name) == target.Name {
			out = append(out, string(deref(ref.SectionName, "")))
		}
	}
	return out
}

// computePolicies makes the DestinationRule of a Service anew. Of several policies for the
// same port, or for the same Service without one, the oldest counts.
func (c *Converter) computePolicies(n node) {
	v := view{c, n}
	key := Key{n.key.Namespace, n.key.Name + "~" + infix}
	policies := slices.SortedFunc(maps.Keys(c.policiesOf[n.key]), func(a, b Key) int {
		if byAge := c.policies[a].CreationTimestamp.Compare(c.policies[b].CreationTimestamp.Time); byAge != 0 {
			return byAge
		}
		return a.Compare(b)
	})
	for _, policy := range policies {
		c.mark(node{nodePolicyStatus, "", policy})
	}
	if len(policies) == 0 {
		delete(c.policyStates, n.key)
		c.publish(istio.DestinationRule, key, nil)
		return
	}
	state := &policyState{verdicts: map[Key]verdict{}}
	c.policyStates[n.key] = state
	s := v.service(n.key)
	traffic := &networking.TrafficPolicy{}
	taken := map[string]bool{}
	var parents []string
	for _, at := range policies {
		policy := c.policies[at]
		tls, wrong := v.clientTLS(policy)
		used, unused := false, problem{}
		for _, section := range sections(policy, n.key) {
			why := addPolicy(traffic, taken, s, section, tls)
			used, unused = used || !why.is(), unused.or(why)
		}
		if used {
			parents = append(parents, string(KindBackendTLSPolicy)+"/"+at.Namespace+"."+at.Name)
		} else {
			wrong.unaccepted = unused
		}
		state.verdicts[at] = wrong
	}
	if len(parents) == 0 {
		c.publish(istio.DestinationRule, key, nil)
		return
	}
	config := c.config(istio.DestinationRule, key, metav1.Time{}, map[string]string{annotationParents: strings.Join(parents, ",")})
	config.Spec = &networking.DestinationRule{Host: c.serviceHost(n.key), TrafficPolicy: traffic}
	c.publish(istio.DestinationRule, key, config)
}

// addPolicy adds the settings of a policy for one port of a Service, or for all others, and
// returns why it does not.
func addPolicy(
	traffic *networking.TrafficPolicy, taken map[string]bool, s *service, section string, tls *networking.ClientTLSSettings,
) problem {
	notFound := string(gatewayv1.PolicyReasonTargetNotFound)
	if s == nil {
		return problem{notFound, "the Service does not exist"}
	}
	port, has := s.portNamed(section)
	switch {
	case section != "" && !has:
		return problem{notFound, "the Service has no port " + section}
	case taken[section]:
		return problem{string(gatewayv1.PolicyReasonConflicted), "an older policy is for the same"}
	case section == "":
		traffic.Tls = tls
	default:
		traffic.PortLevelSettings = append(traffic.PortLevelSettings, &networking.TrafficPolicy_PortTrafficPolicy{
			Port: &networking.PortSelector{Number: uint32(port)}, Tls: tls, //nolint:gosec // 1 to 65535
		})
	}
	taken[section] = true
	return problem{}
}

// clientTLS returns the settings of a policy. Without an authority that can be used all
// connections fail.
func (v view) clientTLS(o *gatewayv1.BackendTLSPolicy) (*networking.ClientTLSSettings, verdict) {
	validation := &o.Spec.Validation
	out := &networking.ClientTLSSettings{Mode: networking.ClientTLSSettings_SIMPLE, Sni: string(validation.Hostname)}
	for _, name := range validation.SubjectAltNames {
		switch name.Type {
		case gatewayv1.HostnameSubjectAltNameType:
			out.SubjectAltNames = append(out.SubjectAltNames, string(name.Hostname))
		case gatewayv1.URISubjectAltNameType:
			out.SubjectAltNames = append(out.SubjectAltNames, string(name.URI))
		}
	}
	if known := validation.WellKnownCACertificates; known != nil && *known != "" {
		if *known == gatewayv1.WellKnownCACertificatesSystem {
			return out, verdict{}
		}
		out.CredentialName = invalidCredential
		return out, verdict{unaccepted: problem{string(gatewayv1.PolicyReasonInvalid), "wellKnownCACertificates must be System"}}
	}
	var wrong verdict
	for _, ref := range validation.CACertificateRefs {
		credential, problem := v.policyAuthority(o.Namespace, ref)
		wrong.noRefs = wrong.noRefs.or(problem)
		if out.CredentialName == "" {
			out.CredentialName = credential
		}
	}
	if out.CredentialName == "" {
		out.CredentialName = invalidCredential
		wrong.unaccepted = problem{string(gatewayv1.BackendTLSPolicyReasonNoValidCACertificate), "there is no authority that can be used"}
	}
	return out, wrong
}

func (v view) policyAuthority(ns string, ref gatewayv1.LocalObjectReference) (string, problem) {
	kind := string(ref.Kind)
	if ref.Group != "" || kind != kindConfigMap && kind != kindSecret {
		return "", problem{string(gatewayv1.BackendTLSPolicyReasonInvalidKind), "an authority must be a ConfigMap or a Secret"}
	}
	credential, wrong := v.authorityNamed(kind, Key{ns, string(ref.Name)})
	if wrong != "" {
		return "", problem{string(gatewayv1.BackendTLSPolicyReasonInvalidCACertificateRef), wrong}
	}
	return credential, problem{}
}

// ancestor is one that a policy applies to.
type ancestor struct {
	controller gatewayv1.GatewayController
	ref        gatewayv1.ParentReference
	verdict    verdict
}

// computePolicyStatus makes the status of a BackendTLSPolicy anew: an entry for each Service
// that it is for, and for each Gateway with a route that names one of these.
func (c *Converter) computePolicyStatus(n node) {
	v := view{c, n}
	o := c.policies[n.key]
	if o == nil {
		c.publishStatus(KindBackendTLSPolicy, n.key, nil)
		return
	}
	status := &gatewayv1.PolicyStatus{Ancestors: []gatewayv1.PolicyAncestorStatus{}}
	for _, entry := range o.Status.Ancestors {
		if entry.ControllerName != ControllerName && entry.ControllerName != meshController {
			status.Ancestors = append(status.Ancestors, entry)
		}
	}
	for _, a := range v.ancestors(o) {
		if len(status.Ancestors) == maxAncestors {
			break
		}
		had := slices.IndexFunc(o.Status.Ancestors, func(p gatewayv1.PolicyAncestorStatus) bool {
			return p.ControllerName == a.controller && sameParent(p.AncestorRef, a.ref)
		})
		var conditions []metav1.Condition
		if had >= 0 {
			conditions = o.Status.Ancestors[had].Conditions
		}
		status.Ancestors = append(status.Ancestors, gatewayv1.PolicyAncestorStatus{
			AncestorRef: a.ref, ControllerName: a.controller,
			Conditions: renew(conditions, o.Generation, []string{accepted, resolvedRefs},
				goodUnless(accepted, "the policy is in effect", a.verdict.unaccepted),
				goodUnless(resolvedRefs, "all references are resolved", a.verdict.noRefs)),
		})
	}
	c.publishStatus(KindBackendTLSPolicy, n.key, status)
}

func (v view) ancestors(o *gatewayv1.BackendTLSPolicy) []ancestor {
	var out, gateways []ancestor
	seen := map[Key]bool{}
	for _, target := range targetServices(o) {
		wrong := v.c.policyStates[target].verdicts[keyOf(o)]
		out = append(out, ancestor{meshController, gatewayv1.ParentReference{
			Group: new(gatewayv1.Group("")), Kind: new(gatewayv1.Kind(kindService)), Name: gatewayv1.ObjectName(target.Name),
		}, wrong})
		for _, gateway := range v.usersOf(target) {
			if seen[gateway] {
				continue
			}
			seen[gateway] = true
			ref := gatewayv1.ParentReference{
				Group: new(gatewayv1.Group(gatewayv1.GroupName)), Kind: new(gatewayv1.Kind(KindGateway)), Name: gatewayv1.ObjectName(gateway.Name),
			}
			if gateway.Namespace != o.Namespace {
				ref.Namespace = new(gatewayv1.Namespace(gateway.Namespace))
			}
			gateways = append(gateways, ancestor{ControllerName, ref, wrong})
		}
	}
	return append(out, gateways...)
}
