// SPDX-License-Identifier: Apache-2.0

package serviceentry

// conversion turns configs into values. It holds everything that the result
// depends on besides the config, is never modified, and has no state: the same
// config always gives the same values.
type conversion struct {
	options    *Options
	mesh       Mesh
	namespaces map[string]Namespace
	// intern returns the one copy of equal attributes.
	intern func(*draft) *interned
}

// spiffeID returns the identity of a service account, "" for no account.
func (c *conversion) spiffeID(namespace, account string) string {
	if account == "" {
		return ""
	}
	return "spiffe://" + c.mesh.trustDomain() + "/ns/" + namespace + "/sa/" + account
}

// build is an intern function that makes new attributes each time.
func build(d *draft) *interned { return &interned{EndpointAttributes: d.build()} }
