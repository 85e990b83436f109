// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"strings"

	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
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

// certificateFor returns the credential that a proxy shows to servers with the policy of a
// rule, which may be nil: a router that of its Gateway, by BackendTLSPolicies; "": none.
func (st *state) certificateFor(p *proxy, m *rule) string {
	if p.role != router || m == nil || !standsForPolicies(m.of[0].config) {
		return ""
	}
	return st.routerOf(p).certificate
}
