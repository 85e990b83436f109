// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"testing"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/registry"
)

// TestBaseOfManyChanges: a scope that was not needed for some pushes is made of the one
// before with all that has changed since, not with the last change only.
func TestBaseOfManyChanges(t *testing.T) {
	settings := newSettings(Options{})
	var configs configList
	configs.add(istio.Sidecar, "shop/s", &networking.Sidecar{Egress: []*networking.IstioEgressListener{{Hosts: []string{"./*"}}}})
	x, w := newIndex(configs, settings), newListWorld()
	virtualService := func(namespace string, hosts ...string) []objectChange {
		var list configList
		list.add(istio.VirtualService, namespace+"/v", &networking.VirtualService{Hosts: hosts})
		return []objectChange{{key: list[0].Key(), after: newObject(list[0], settings)}}
	}
	st := newState(x, w)
	scope := st.scopeOf(&proxy{namespace: "shop"})
	if scope.sidecar == nil {
		t.Fatal("the Sidecar does not hold")
	}
	service := newListWorld(testService("shop", "a.shop.svc.cluster.local", 80))
	nothing := &difference{services: []registry.Hostname{"ghost.example.com"}, objects: virtualService("billing", "ghost.example.com")}
	for name, tt := range map[string]struct {
		first    *difference
		world    *listWorld
		concerns bool
	}{
		"nothing that it imports": {nothing, w, false},
		"a service":               {&difference{services: []registry.Hostname{"a.shop.svc.cluster.local"}}, service, true},
		"a VirtualService":        {&difference{objects: virtualService("shop", "b.shop.svc.cluster.local")}, w, true},
		"a delegate":              {&difference{objects: virtualService("billing")}, w, true},
	} {
		b := scopeBase{scope: scope}.since(tt.first).since(nothing)
		if got := b.concerns(tt.world); got != tt.concerns {
			t.Errorf("%s, then nothing: concerns %t, want %t", name, got, tt.concerns)
		}
	}
}

// TestBasesAreDropped: a scope of earlier states is kept until it has not been needed
// for long, or too much has changed.
func TestBasesAreDropped(t *testing.T) {
	base, nothing := &scopeBase{scope: &scope{}}, &difference{}
	for range maxBaseAge {
		if base = base.since(nothing); base == nil {
			t.Fatal("it is dropped too early")
		}
	}
	if base.since(nothing) != nil {
		t.Error("it is kept though it has not been needed for long")
	}
	much := &difference{services: make([]registry.Hostname, maxBaseChanges)}
	if base = (scopeBase{scope: &scope{}}).since(much); base == nil {
		t.Fatal("it is dropped before too much has changed")
	}
	if base.since(&difference{services: make([]registry.Hostname, 1)}) != nil {
		t.Error("it is kept though too much has changed")
	}
}

// TestNeededScopeIsTheNextBase: what has changed before a scope was needed last is not
// looked at again.
func TestNeededScopeIsTheNextBase(t *testing.T) {
	x, w, p := newIndex(configList{}, newSettings(Options{})), newListWorld(), &proxy{namespace: "shop"}
	change := &difference{services: []registry.Hostname{"a.example.com"}}
	st := newState(x, w)
	st.scopeOf(p)
	st = st.next(x, w, change)
	st.scopeOf(p)
	st = st.next(x, w, change)
	for _, base := range st.bases {
		if base.age != 1 || len(base.hosts) != 1 {
			t.Errorf("the scope is %d states old, and %d hosts have changed, want 1 and 1", base.age, len(base.hosts))
		}
	}
	if len(st.bases) != 1 {
		t.Errorf("%d scopes are kept, want 1", len(st.bases))
	}
}
