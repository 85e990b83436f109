// SPDX-License-Identifier: Apache-2.0

package listing

import (
	"cmp"
	"strings"

	"github.com/pilotkit/pilotkit/configstore"
)

// Key identifies an object within its kind.
type Key struct{ Namespace, Name string }

// KeyOf returns the key of an object.
func KeyOf(c *configstore.Config) Key { return Key{c.Namespace, c.Name} }

// Compare orders keys as lists are sorted: by namespace, then by name.
func (k Key) Compare(l Key) int {
	return cmp.Or(strings.Compare(k.Namespace, l.Namespace), strings.Compare(k.Name, l.Name))
}

func compareKey(c *configstore.Config, k Key) int {
	return cmp.Or(strings.Compare(c.Namespace, k.Namespace), strings.Compare(c.Name, k.Name))
}
