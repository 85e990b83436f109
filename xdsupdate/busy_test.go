// SPDX-License-Identifier: Apache-2.0

package xdsupdate_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// busyMesh is a Pusher to which tenants write, by the clock of a synctest bubble, and how long watched objects waited.
type busyMesh struct {
	pusher *xdsupdate.Pusher
	mu     sync.Mutex
	asked  map[configstore.ConfigKey]time.Time
	waited map[string]time.Duration // the longest, by kind
	pushes int
}

// watch asks for a push of an object whose wait is measured.
func (m *busyMesh) watch(group, kind string, i int) {
	key := configstore.ConfigKey{Kind: configstore.GroupVersionKind{Group: group, Version: "v1", Kind: kind}, Namespace: "shop", Name: fmt.Sprint(i)}
	m.mu.Lock()
	m.asked[key] = time.Now()
	m.mu.Unlock()
	m.pusher.ConfigUpdate(&xdsupdate.PushRequest{Full: true, ConfigsUpdated: xdsupdate.KeySet(key)})
}

func (m *busyMesh) push(r *xdsupdate.PushRequest) {
	m.mu.Lock()
	for key := range r.ConfigsUpdated {
		if at, ok := m.asked[key]; ok {
			m.waited[key.Kind.Kind] = max(m.waited[key.Kind.Kind], time.Since(at))
			delete(m.asked, key)
		}
	}
	m.pushes++
	m.mu.Unlock()
	time.Sleep(20 * time.Millisecond) // what a push takes
}

// TestBusyTenants: a change is on its way within a second, and one of a policy within 100 ms,
// however many tenants write how often, policies among what they write; and they make no more
// pushes than one for each SecurityMax.
func TestBusyTenants(t *testing.T) {
	const lasts = 20 * time.Second
	for _, tenants := range []int{0, 1, 10, 100} {
		for _, kind := range []string{"networking.istio.io/VirtualService", "security.istio.io/AuthorizationPolicy"} {
			synctest.Test(t, func(t *testing.T) {
				m := &busyMesh{asked: make(map[configstore.ConfigKey]time.Time), waited: make(map[string]time.Duration)}
				m.pusher = xdsupdate.NewPusher(m.push)
				stop := make(chan struct{})
				var wg sync.WaitGroup
				wg.Go(func() { m.pusher.Run(stop) })
				for tenant := range tenants {
					r := rand.New(rand.NewPCG(uint64(tenant), 11))
					key := keyOf(kind, tenant)
					wg.Go(func() {
						for end := time.Now().Add(lasts); time.Now().Before(end); time.Sleep(time.Duration(2+r.IntN(49)) * time.Millisecond) {
							m.pusher.ConfigUpdate(&xdsupdate.PushRequest{Full: true, ConfigsUpdated: xdsupdate.KeySet(key)})
						}
					})
				}
				for i := range 15 {
					time.Sleep(617 * time.Millisecond)
					m.watch("networking.istio.io", "Sidecar", i)
					time.Sleep(617 * time.Millisecond)
					m.watch("networking.istio.io", "Gateway", i)
					time.Sleep(7 * time.Millisecond)
					m.watch("security.istio.io", "PeerAuthentication", i)
				}
				time.Sleep(lasts)
				close(stop)
				wg.Wait()
				t.Logf("%d tenants of %s: %v, %d pushes", tenants, kind, m.waited, m.pushes)
				if len(m.asked) > 0 || max(m.waited["Gateway"], m.waited["Sidecar"]) > time.Second || m.waited["PeerAuthentication"] > 100*time.Millisecond {
					t.Errorf("%d tenants of %s: changes waited for %v, %d were not pushed", tenants, kind, m.waited, len(m.asked))
				}
				if most := int(lasts/(50*time.Millisecond)) + 60; m.pushes > most {
					t.Errorf("%d tenants of %s: %d pushes, more than %d", tenants, kind, m.pushes, most)
				}
			})
		}
	}
}

// keyOf returns the key of an object of a tenant, of a kind "group/Kind".
func keyOf(kind string, tenant int) configstore.ConfigKey {
	gvk := configstore.GroupVersionKind{Group: "networking.istio.io", Version: "v1", Kind: "VirtualService"}
	if kind == "security.istio.io/AuthorizationPolicy" {
		gvk = configstore.GroupVersionKind{Group: "security.istio.io", Version: "v1", Kind: "AuthorizationPolicy"}
	}
	return configstore.ConfigKey{Kind: gvk, Namespace: fmt.Sprint("tenant", tenant), Name: "busy"}
}
