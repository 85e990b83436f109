// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

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
