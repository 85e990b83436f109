// SPDX-License-Identifier: Apache-2.0

package serviceentry

import (
	"log/slog"

	"github.com/pilotkit/pilotkit/internal/guard"
	"github.com/pilotkit/pilotkit/registry"
)

// conversion turns configs into values. It holds everything that the result
// depends on besides the config, and is never modified: the same config always gives
// the same values.
type conversion struct {
	options *Options
	settings
	// interner keeps one copy of equal attributes.
	interner *interner
}

// settings are what conversions depend on and may change. The map is replaced,
// never modified.
type settings struct {
	mesh       Mesh
	namespaces map[string]Namespace
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

// networkOf asks the program for a network. There is none if it panics.
func (c *conversion) networkOf(address string, labels registry.Labels) (network string) {
	p := guard.Call(func() { network = c.options.NetworkOf(address, labels) })
	if p != nil {
		p.Log(c.options.Logger, "NetworkOf", slog.String("address", address))
	}
	return network
}
