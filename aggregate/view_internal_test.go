// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"fmt"
	"strconv"
	"sync"
	"testing"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/listing"
)

// Validate checks what holds while no change is in progress.
func (c *Cache) Validate() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, v := range c.views {
		if err := v.validate(); err != nil {
			return fmt.Errorf("%s: %w", v.kind.Kind, err)
		}
	}
	return nil
}

func (v *view) validate() error {
	for k, versions := range v.shadowed {
		winner, note := v.winners.Get(k)
		owner := int(note)
		if winner == nil || len(versions) == 0 {
			return fmt.Errorf("%v has %d shadowed objects, and %v is seen", k, len(versions), winner)
		}
		for _, version := range versions {
			if version.member <= owner {
				return fmt.Errorf("%v of member %d is shadowed by that of %d", k, version.member, owner)
			}
			owner = version.member
		}
	}
	return v.lists.Validate()
}

// Namespaces that come and go leave nothing behind, listed or not.
func TestViewForgetsNamespaces(t *testing.T) {
	var mu sync.Mutex
	v := newView(configstore.GroupVersionKind{Version: "v1", Kind: "Widget"}, &mu)
	for i := range 100 {
		k := listing.Key{Namespace: "n" + strconv.Itoa(i), Name: "x"}
		c := &configstore.Config{Meta: configstore.Meta{GroupVersionKind: v.kind, Namespace: k.Namespace, Name: k.Name}}
		v.set(0, k, c)
		if i%2 == 0 {
			v.lists.List(k.Namespace)
		}
		v.set(1, k, c) // is shadowed
		d := *c
		d.ResourceVersion = "2"
		v.set(0, k, &d)
		if got := v.lists.List(k.Namespace).Items; len(got) != 1 || got[0] != &d {
			t.Fatalf("List(%s) = %v, want the object", k.Namespace, got)
		}
		v.set(0, k, nil)
		if got := v.lists.List(k.Namespace).Items; len(got) != 1 || got[0] != c {
			t.Fatalf("List(%s) = %v, want the one that was shadowed", k.Namespace, got)
		}
		if err := v.validate(); err != nil {
			t.Fatal(err)
		}
		v.set(1, k, nil)
		if got := v.lists.List(k.Namespace); got != nil {
			t.Errorf("List(%s) = %v, want none", k.Namespace, got)
		}
		if err := v.validate(); err != nil { // no namespace has a list
			t.Fatal(err)
		}
	}
}
