// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	networking "istio.io/api/networking/v1alpha3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/internal/excerpt"
)

// invalidCredential references no certificate, so that connections fail.
const invalidCredential = "invalid://"

// maxAncestors is the maximum number of entries in the status of a policy.
const maxAncestors = 16

// policyState is the result of the BackendTLSPolicies of a Service or ServiceEntry.
type policyState struct {
	verdicts map[Key]verdict
	configs  map[Key]*configstore.Config
}

// verdict contains the problems of a policy.
type verdict struct{ unaccepted, noRefs problem }

// computePolicies recomputes the DestinationRules of a Service or ServiceEntry. Of several policies
// for the same port, or for the same target without a port, the oldest takes effect.
func (c *Converter) computePolicies(n node) {
	v, of := view{c, n}, target{string(n.route), n.key}
	old := c.policyStates[of]
	if old == nil {
		old = &policyState{}
	}
	next := &policyState{verdicts: map[Key]verdict{}, configs: map[Key]*configstore.Config{}}
	if policies := c.policiesByAge(of); len(policies) > 0 {
		v.convertPolicies(of, policies, next)
		c.policyStates[of] = next
	} else {
		delete(c.policyStates, of)
	}
	c.replaceConfigs(istio.DestinationRule, old.configs, next.configs)
}

// policiesByAge returns the policies of a target, the oldest first.
func (c *Converter) policiesByAge(of target) []Key {
	return slices.SortedFunc(maps.Keys(c.policiesOf[of]), func(a, b Key) int {
		if byAge := c.policies[a].CreationTimestamp.Compare(c.policies[b].CreationTimestamp.Time); byAge != 0 {
			return byAge
		}
		return a.Compare(b)
	})
}

// convertPolicies fills the state of a target with the results of its policies.
func (v view) convertPolicies(of target, policies []Key, state *policyState) {
	backend := v.backendOf(of)
	traffic := &networking.TrafficPolicy{}
	taken := map[string]bool{}
	var parents []string
	for _, at := range policies {
		v.c.mark(node{nodePolicyStatus, "", at})
		policy := v.c.policies[at]
		tls, wrong := v.clientTLS(policy)
		used, unused := false, problem{}
		for _, section := range sections(policy, of) {
			why := addPolicy(traffic, taken, backend, section, tls)
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
		return
	}
	for host, key := range backend.configs {
		config := v.c.config(istio.DestinationRule, key, metav1.Time{}, map[string]string{annotationParents: strings.Join(parents, ",")})
		config.Spec = &networking.DestinationRule{Host: host, TrafficPolicy: traffic}
		state.configs[key] = config
	}
}

// addPolicy adds the settings of a policy for one port of a target, or for all other ports. The
// target may be nil. It returns the reason if it does not add them.
func addPolicy(
	traffic *networking.TrafficPolicy, taken map[string]bool, of *backend, section string, tls *networking.ClientTLSSettings,
) problem {
	notFound := string(gatewayv1.PolicyReasonTargetNotFound)
	if of == nil {
		return problem{notFound, "the target does not exist"}
	}
	port, has := of.portNamed(section)
	switch {
	case section != "" && !has:
		return problem{notFound, "the target has no port " + section}
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

// clientTLS returns the settings of a policy. Without a usable CA certificate all connections fail.
func (v view) clientTLS(o *gatewayv1.BackendTLSPolicy) (*networking.ClientTLSSettings, verdict) {
	validation := &o.Spec.Validation
	if wrong := badServerNames(validation); wrong.is() {
		return &networking.ClientTLSSettings{Mode: networking.ClientTLSSettings_SIMPLE, CredentialName: invalidCredential}, verdict{unaccepted: wrong}
	}
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

// badServerNames returns the problem of a policy's server names, if any.
func badServerNames(of *gatewayv1.BackendTLSPolicyValidation) problem {
	names := []string{string(of.Hostname)}
	for _, name := range of.SubjectAltNames {
		switch name.Type {
		case gatewayv1.HostnameSubjectAltNameType:
			names = append(names, string(name.Hostname))
		case gatewayv1.URISubjectAltNameType:
			if _, err := url.Parse(string(name.URI)); err != nil {
				return problem{string(gatewayv1.PolicyReasonInvalid), "a subjectAltName is not a URI"}
			}
		}
	}
	for _, name := range names {
		if !isHostname(name) {
			return problem{string(gatewayv1.PolicyReasonInvalid), strconv.Quote(excerpt.Name(name)) + " is not a host name"}
		}
	}
	return problem{}
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

// ancestor is an object to which a policy applies.
type ancestor struct {
	controller gatewayv1.GatewayController
	ref        gatewayv1.ParentReference
	verdict    verdict
}

// computePolicyStatus recomputes the status of a BackendTLSPolicy: an entry for each target, and
// for each Gateway with a route that references a target.
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
	for _, of := range targets(o) {
		wrong := v.c.policyStates[of].verdicts[keyOf(o)]
		out = append(out, ancestor{meshController, of.parent(), wrong})
		for _, gateway := range v.usersOf(of) {
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
	return slices.Concat(out, unsupported(o), gateways)
}
