// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"strings"

	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/registry"
)

// parentsAnnotation lists the Kubernetes objects that a config was generated from, each as
// "Kind/namespace.name" (Istio 1.30).
const parentsAnnotation = "internal.istio.io/parents"

// standsForPolicies reports whether a DestinationRule was generated from BackendTLSPolicies.
func standsForPolicies(c *configstore.Config) bool {
	return strings.HasPrefix(c.Annotations[parentsAnnotation], "BackendTLSPolicy/")
}

// namingServers returns the spec of a DestinationRule with the subject names that servers must
// present. If a BackendTLSPolicy has no explicit names, its SNI is required, as the Gateway API
// says. A DestinationRule of a user without names is unchanged: its clusters require the service
// accounts of the service or, without these, accept any certificate of the authority.
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

// policiesOf returns the DestinationRules generated from BackendTLSPolicies for a host, as a proxy
// sees them, and the lookup step that found them. The namespace is that of the host's service.
// DestinationRules of users take precedence even if another step finds them (Istio of August 2026,
// within a namespace).
func (x *index) policiesOf(p *proxy, host registry.Hostname, namespace string) ([]*destinationRule, ruleStep) {
	for i, at := range []string{p.namespace, namespace, x.settings.rootNamespace()} {
		if h, ok := x.rules.hosts.Get(ruleKey{at, lower(host)}); ok && len(h.policies) > 0 {
			return h.policies, clientNamespace + ruleStep(i) //nolint:gosec // one of three
		}
	}
	return nil, noRule
}

// policyTLS returns the TLS settings of BackendTLSPolicies for a port of a host, or nil.
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

// applyPolicies sets the TLS settings of BackendTLSPolicies in the policy of a cluster, unless a
// DestinationRule of a user sets TLS. A router also presents the client certificate of its Gateway
// to such servers.
func (st *state) applyPolicies(u *xdsbuild.Upstream, p *proxy, at clusterPlace) {
	policies, _ := st.policiesOf(p, at.host, at.port.of.Attributes.Namespace)
	tls := policyTLS(policies, at.port.Number)
	if tls == nil || u.Policy.GetTls() != nil {
		return
	}
	if u.Policy == nil {
		u.Policy = &networking.TrafficPolicy{}
	}
	u.Policy.Tls = tls // The policy belongs to this cluster alone.
	if p.role == router {
		u.Certificate = st.routerOf(p).certificate
	}
}
