// SPDX-License-Identifier: Apache-2.0

package mesh

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/hostname"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
)

// TestEgressHostsIndexed: hosts that are found by an index are those that are found by
// comparing all of them.
func TestEgressHostsIndexed(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	pick := func(from ...string) string { return from[r.IntN(len(from))] }
	host := func() string {
		name := pick("*", "*.com", "*.a.com", "*a.com", "a.com", "b.a.com", "*.b.a.com", "x.org", "A.com")
		if r.IntN(3) == 0 {
			name = fmt.Sprintf("h%d.a.com", r.IntN(9))
		}
		return name
	}
	found := 0
	for range 2000 {
		var hosts []string
		for range hostname.FewHosts.Get() + 1 + r.IntN(9) {
			hosts = append(hosts, pick("n1", "n2", "n3", "*", ".", "~n1", "~n2", "~")+"/"+pick("q.net", host()))
		}
		list := NewEgressHosts(hosts, "n3")
		index := list.indexed()
		if len(list.Include.List) > hostname.FewHosts.Get() && index.Include.known == nil {
			t.Fatal("no index")
		}
		namespace := pick("n1", "n2", "n3", "n4")
		s := &registry.Service{Hostname: registry.Hostname(host()), Attributes: registry.ServiceAttributes{Namespace: namespace}}
		v := &objects.VirtualService{Stored: objects.Stored{ObjectName: objects.ObjectName{Namespace: namespace, Name: "v"}}, Hosts: []registry.Hostname{hostname.Lower(registry.Hostname(host()))}}
		if list.Service(s) != index.Service(s) || list.VirtualService(v) != index.VirtualService(v) {
			t.Fatalf("%s %s, %s of %q: %t, %t by the index", namespace, s.Hostname, v.Hosts, hosts, list.Service(s), index.Service(s))
		}
		if list.Service(s) && index.Include.known != nil {
			found++
		}
	}
	if found < 100 {
		t.Errorf("only %d services are imported", found)
	}
}
