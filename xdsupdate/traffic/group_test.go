// SPDX-License-Identifier: Apache-2.0

package traffic

import "testing"

// TestGroupText: what policies make of a proxy can be read in what the server says of it.
func TestGroupText(t *testing.T) {
	for want, g := range map[string]group{
		"": {},
		"router; labels app=a,v=1; locality r/z; network n; addresses 0.0.0.0,::; targets 80=8080; a ProxyConfig of its own": {
			router: true, labels: "app=a\x00v=1", locality: "r/z", network: "n", addresses: "0.0.0.0,::", config: "=\x01", targets: "80=8080",
		},
	} {
		if got := g.String(); got != want {
			t.Errorf("String() = %q, want %q", got, want)
		}
	}
}
