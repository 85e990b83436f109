// SPDX-License-Identifier: Apache-2.0

package serviceentry

// conversion turns configs into values. It holds everything that the result
// depends on besides the config, is never modified, and has no state: the same
// config always gives the same values.
type conversion struct {
	options *Options
	settings
	// interner keeps one copy of equal attributes; nil makes new ones each time.
	interner *interner
}

// settings are what conversions depend on and may change. The map is replaced,
// never modified.
type settings struct {
	mesh       Mesh
	namespaces map[string]Namespace
}

// intern returns the copy of what is drafted.
func (c *conversion) intern(d *draft) *interned {
	if c.interner == nil {
		return &interned{EndpointAttributes: d.build(d.buildLabels())}
	}
	return c.interner.acquire(d)
}

// spiffe is the identity of a service account, in its parts: the text is built
// only if it has not been built before. The zero value is none.
type spiffe struct{ trustDomain, namespace, account string }

func (s spiffe) String() string {
	if s == (spiffe{}) {
		return ""
	}
	return "spiffe://" + s.trustDomain + "/ns/" + s.namespace + "/sa/" + s.account
}

// is reports whether String would return text.
func (s spiffe) is(text string) bool {
	if s == (spiffe{}) {
		return text == ""
	}
	for _, part := range [...]string{"spiffe://", s.trustDomain, "/ns/", s.namespace, "/sa/", s.account} {
		if len(text) < len(part) || text[:len(part)] != part {
			return false
		}
		text = text[len(part):]
	}
	return text == ""
}
