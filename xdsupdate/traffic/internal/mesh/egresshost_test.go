// SPDX-License-Identifier: Apache-2.0

package mesh

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/hostname"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
)

// TestEgressHosts: what is imported is what comparing all hosts finds.
func TestEgressHosts(t *testing.T) {
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
		for range 5*hostname.FewHosts.Get() + r.IntN(9) {
			hosts = append(hosts, pick("n1", "n2", "n3", "*", ".", "~n1", "~n2", "~")+"/"+pick("q.net", host()))
		}
		e := NewEgressHosts(hosts, "n3")
		namespace := pick("n1", "n2", "n3", "n4")
		s := &registry.Service{Hostname: registry.Hostname(host()), Attributes: registry.ServiceAttributes{Namespace: namespace}}
		v := &objects.VirtualService{Stored: objects.Stored{ObjectName: objects.ObjectName{Namespace: namespace, Name: "v"}}, Hosts: []registry.Hostname{hostname.Lower(registry.Hostname(host()))}}
		service := anyOf(hosts, namespace, hostname.Lower(s.Hostname), registry.Hostname.SubsetOf)
		virtual := anyOf(hosts, namespace, v.Hosts[0], registry.Hostname.Matches)
		if e.Service(s) != service || e.VirtualService(v) != virtual {
			t.Fatalf("%s %s, %s of %q: %t, %t instead of %t, %t", namespace, s.Hostname, v.Hosts, hosts, e.Service(s), e.VirtualService(v), service, virtual)
		}
		if service {
			found++
		}
	}
	if found < 100 {
		t.Errorf("only %d services are imported", found)
	}
}

// anyOf reports whether a host is related to one that is included, and to none that is excluded.
func anyOf(hosts []string, namespace string, name registry.Hostname, related func(name, of registry.Hostname) bool) bool {
	included, excluded := false, false
	for _, h := range hosts {
		ns, host, _ := strings.Cut(h, "/")
		ns, without := strings.CutPrefix(ns, "~")
		switch ns {
		case ".":
			ns = "n3"
		case "":
			ns = "*"
		}
		if (ns == "*" || ns == namespace) && related(name, hostname.Canonical(host)) {
			included, excluded = included || !without, excluded || without
		}
	}
	return included && !excluded
}
