// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/pilotkit/pilotkit/registry"
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
		for range fewHosts.Get() + 1 + r.IntN(9) {
			hosts = append(hosts, pick("n1", "n2", "n3", "*", ".", "~n1", "~n2", "~")+"/"+pick("q.net", host()))
		}
		list := newEgressHosts(hosts, "n3")
		index := list.indexed()
		if len(list.include.list) > fewHosts.Get() && index.include.known == nil {
			t.Fatal("no index")
		}
		namespace := pick("n1", "n2", "n3", "n4")
		s := &registry.Service{Hostname: registry.Hostname(host()), Attributes: registry.ServiceAttributes{Namespace: namespace}}
		v := &virtualService{stored: stored{objectName: objectName{namespace, "v"}}, hosts: []registry.Hostname{lower(registry.Hostname(host()))}}
		if list.service(s) != index.service(s) || list.virtualService(v) != index.virtualService(v) {
			t.Fatalf("%s %s, %s of %q: %t, %t by the index", namespace, s.Hostname, v.hosts, hosts, list.service(s), index.service(s))
		}
		if list.service(s) && index.include.known != nil {
			found++
		}
	}
	if found < 100 {
		t.Errorf("only %d services are imported", found)
	}
}
