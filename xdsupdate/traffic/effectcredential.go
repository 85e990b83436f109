// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// policyCredentials adds the findings about credential names at all levels of a traffic policy.
func (f *findings) policyCredentials(field string, p *networking.TrafficPolicy) {
	f.credentials(field+".tls.credentialName", p.GetTls().GetCredentialName())
	for i, s := range p.GetPortLevelSettings() {
		f.credentials(element(field+".portLevelSettings", i)+".tls.credentialName", s.GetTls().GetCredentialName())
	}
}

// credentials adds findings for credential names with a scheme, such as "sds://provider". Such
// secrets belong to an SDS provider next to the proxy.
func (f *findings) credentials(field string, names ...string) {
	for _, name := range names {
		if name == "" {
			continue
		}
		if _, known := envoy.ParseSecretName(envoy.CredentialName(name)); !known {
			f.add(field, "providers of secrets beside proxies are not used: %q is asked for as a secret of this server, which only a provider of the program can serve", name)
		}
	}
}
