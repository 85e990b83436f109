// SPDX-License-Identifier: Apache-2.0

package configstore_test

import (
	"testing"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/memory"
)

// opaque hides the abilities of a cache beyond ConfigStoreCache.
type opaque struct{ configstore.ConfigStoreCache }

// transparent exposes the wrapped store.
type transparent struct{ configstore.ConfigStoreCache }

func (w transparent) Unwrap() configstore.ConfigStore { return w.ConfigStoreCache }

// drained is an ability of a wrapper's own.
type drained struct {
	transparent
	calls *int
}

func (w drained) Drain() { *w.calls++ }

func TestAs(t *testing.T) {
	cache := memory.NewController(memory.Make(istio.Schemas()))
	for _, tt := range []struct {
		name  string
		store configstore.ConfigStore
		want  bool
	}{
		{"the store itself", cache, true},
		{"of a wrapper", transparent{cache}, true},
		{"of a wrapper of a wrapper", transparent{transparent{cache}}, true},
		{"hidden by a wrapper", opaque{cache}, false},
		{"hidden behind a wrapper", transparent{opaque{cache}}, false},
		{"of a wrapper of nothing", transparent{}, false},
		{"of nothing", nil, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := configstore.As[configstore.Watcher](tt.store)
			if ok != tt.want || ok != (got != nil) {
				t.Fatalf("As[Watcher] = %v, %t, want %t", got, ok, tt.want)
			}
			if ok && got != configstore.Watcher(cache) {
				t.Errorf("As[Watcher] = %v, want the wrapped cache", got)
			}
		})
	}
}

// An ability of the wrapper takes precedence over that of the wrapped store.
func TestAsPrefersTheWrapper(t *testing.T) {
	var calls int
	d, ok := configstore.As[configstore.Drainer](drained{transparent{memory.NewController(memory.Make(istio.Schemas()))}, &calls})
	if !ok {
		t.Fatal("the wrapper has no Drain")
	}
	if d.Drain(); calls != 1 {
		t.Errorf("the wrapper's Drain was called %d times, want once", calls)
	}
}
