// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"strings"

	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// parentsAnnotation names the objects of Kubernetes that a config was made of, each
// "Kind/namespace.name" (Istio 1.30).
const parentsAnnotation = "internal.istio.io/parents"

// standsForPolicies reports whether a DestinationRule was made of BackendTLSPolicies.
func standsForPolicies(c *configstore.Config) bool {
	return strings.HasPrefix(c.Annotations[parentsAnnotation], "BackendTLSPolicy/")
}

// namingServers returns the spec of a DestinationRule with the names that servers must have.
// Where a BackendTLSPolicy gives no others it is the one that they are asked for, as the
// Gateway API says; a DestinationRule without names takes those of the service, or, if that
// has none, any that the authority has signed.
func namingServers(c *configstore.Config, spec *networking.DestinationRule) *networking.DestinationRule {
	if !standsForPolicies(c) {
		return spec
	}
	out := proto.CloneOf(spec)
	name := func(tls *networking.ClientTLSSettings) {
		if tls != nil && len(tls.GetSubjectAltNames()) == 0 && tls.GetSni() != "" {
			tls.SubjectAltNames = []string{tls.GetSni()}
		}
	}
	name(out.GetTrafficPolicy().GetTls())
	for _, port := range out.GetTrafficPolicy().GetPortLevelSettings() {
		name(port.GetTls())
	}
	return out
}

// policiesOf returns the rules that were made of BackendTLSPolicies for a host, whose service is in a namespace, as a proxy
// sees it, and by which step they were found. What rules of users say, whether they are found by the same step or not,
// comes before what these say (Istio of August 2026, within a namespace).
func (x *index) policiesOf(p *proxy, host registry.Hostname, namespace string) ([]*destinationRule, ruleStep) {
	for i, at := range []string{p.namespace, namespace, x.settings.rootNamespace()} {
		if h, ok := x.rules.hosts.Get(ruleKey{at, lower(host)}); ok && len(h.policies) > 0 {
			return h.policies, clientNamespace + ruleStep(i) //nolint:gosec // one of three
		}
	}
	return nil, noRule
}

// policyTLS returns the settings that BackendTLSPolicies have for a port of a host; nil for none.
func policyTLS(policies []*destinationRule, port uint32) *networking.ClientTLSSettings {
	for _, r := range policies {
		for _, at := range r.spec.GetTrafficPolicy().GetPortLevelSettings() {
			if at.GetPort().GetNumber() == port && at.GetTls() != nil {
				return at.GetTls()
			}
		}
	}
	for _, r := range policies {
		if tls := r.spec.GetTrafficPolicy().GetTls(); tls != nil {
			return tls
		}
	}
	return nil
}

// applyPolicies gives the policy of a cluster the TLS settings of BackendTLSPolicies, unless a rule of a user has some, and
// a router the certificate of its Gateway for servers with these settings.
func (st *state) applyPolicies(u *envoy.Upstream, p *proxy, at clusterPlace) {
	policies, _ := st.policiesOf(p, at.host, at.port.of.Attributes.Namespace)
	tls := policyTLS(policies, at.port.Number)
	if tls == nil || u.Policy.GetTls() != nil {
		return
	}
	if u.Policy == nil {
		u.Policy = &networking.TrafficPolicy{}
	}
	u.Policy.Tls = tls // The policy is this cluster's own.
	if p.role == router {
		u.Certificate = st.routerOf(p).certificate
	}
}
