// SPDX-License-Identifier: Apache-2.0

package serviceentry_test

import (
	"strings"
	"testing"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/serviceentry"
	"github.com/pilotkit/pilotkit/registry/serviceentry/explain"
)

func TestExplain(t *testing.T) {
	t.Parallel()
	s := newSystem(t, serviceentry.Options{})
	elsewhere := entry("elsewhere", nil, "a.com", "1.1.1.9")
	elsewhere.Namespace = "other"
	s.apply(
		elsewhere, entry("inline", nil, "a.com", "1.1.1.1"),
		entry("selects", func(e *networking.ServiceEntry) {
			selecting(e)
			e.Addresses = []string{"10.0.0.1", "10.0.0.2"}
		}, "a.com"),
		entry("selects-too", selecting, "a.com"),
		entry("robin", roundRobin, "a.com", "e.org"),
		entry("nothing", selectingApp("none"), "a.com"),
		entry("host", dns, "b.com"),
		workloadEntry("w", "1.1.1.2", nil),
	)
	s.registry.WorkloadInstanceHandler(pod("p", nil, "1.1.1.3", "2001:db8::3"), registry.EventAdd)
	for hostname, want := range map[registry.Hostname]string{
		"a.com": `a.com in namespace ns
  ServiceEntry inline, resolution ClientSide, addresses 0.0.0.0
    1.1.1.1:80 for port http (80) from endpoints[0]
  ServiceEntry selects, resolution ClientSide, addresses 10.0.0.1, 10.0.0.2, selects {app=web}
    [1.1.1.3,2001:db8::3]:80 for port http (80) from Pod ns/p of cluster c1
    1.1.1.2:80 for port http (80) from WorkloadEntry ns/w of cluster c1
  ServiceEntry selects-too, resolution ClientSide, addresses 0.0.0.0, selects {app=web}
    [1.1.1.3,2001:db8::3]:80 for port http (80) from Pod ns/p of cluster c1, not sent: it equals one of selects
    1.1.1.2:80 for port http (80) from WorkloadEntry ns/w of cluster c1, not sent: it equals one of selects
  ServiceEntry robin, resolution DNSRoundRobin, addresses 0.0.0.0
    e.org:80 for port http (80) from endpoints[0], not sent: DNS_ROUND_ROBIN has one endpoint for a port, that of inline
  ServiceEntry nothing, resolution ClientSide, addresses 0.0.0.0, selects {app=none}
    no endpoints
`,
		"b.com": `b.com in namespace ns
  ServiceEntry host, resolution DNS, addresses 0.0.0.0
    b.com:80 for port http (80) from the host itself
`,
		"c.com": "c.com in namespace ns is not defined by any ServiceEntry\n",
	} {
		diff(t, string(hostname), strings.Split(explain.Host(s.registry, "ns", hostname).String(), "\n"), strings.Split(want, "\n"))
	}
	// What it says is sent is what is sent.
	var sent []*registry.Endpoint
	for _, e := range explain.Host(s.registry, "ns", "a.com").Entries {
		for _, p := range e.Endpoints {
			if p.Dropped == "" {
				sent = append(sent, p.Endpoint)
			}
		}
	}
	diff(t, "sent", len(sent), len(s.recorder.endpoints["ns/a.com"]))
}

func TestExplainWorkload(t *testing.T) {
	t.Parallel()
	s := newSystem(t, serviceentry.Options{})
	elsewhere := entry("elsewhere", selecting, "e.com")
	elsewhere.Namespace = "other"
	unrelated := entry("unrelated", selectingApp("x"), "u.com")
	unrelated.Namespace = "other"
	ported := workloadEntry("ported", "1.1.1.1", nil)
	ported.Spec.(*networking.WorkloadEntry).Ports = map[string]uint32{"http": 8080, "grpc": 9090, "metrics": 9091, "admin": 9092}
	s.apply(
		entry("inline", nil, "i.com", "1.1.1.9"), entry("dns", edits(dns, selecting), "d.com"),
		entry("two", edits(selecting, hosts("a.com", "b.com")), ""),
		entry("version", func(e *networking.ServiceEntry) {
			e.WorkloadSelector = &networking.WorkloadSelector{Labels: map[string]string{"app": "web", "v": "2"}}
		}, "v.com"),
		elsewhere, unrelated, ported, workloadEntry("named", "vm.org", nil),
		checked(workloadEntry("sick", "1.1.1.2", nil), "False"),
	)
	for _, test := range []struct{ name, want string }{
		{"ported", `WorkloadEntry ns/ported of cluster c1, address 1.1.1.1, labels {app=web,topology.istio.io/cluster=c1}
  ServiceEntry ns/dns (d.com) selects it, ports http→8080; it has no ports admin, grpc, metrics
  ServiceEntry ns/two (a.com, b.com) selects it, ports http→8080; it has no ports admin, grpc, metrics
  ServiceEntry ns/version (v.com) does not select it: the workload lacks labels: v=2
  ServiceEntry other/elsewhere (e.com) does not select it: the workload is in namespace ns
`},
		{"named", `WorkloadEntry ns/named of cluster c1, address vm.org, labels {app=web,topology.istio.io/cluster=c1}
  ServiceEntry ns/dns (d.com) selects it, ports http→80
  ServiceEntry ns/two (a.com, b.com) does not select it: the address of the workload is not an IP address, and the resolution is not DNS
  ServiceEntry ns/version (v.com) does not select it: the workload lacks labels: v=2
  ServiceEntry other/elsewhere (e.com) does not select it: the workload is in namespace ns
`},
		{"sick", "WorkloadEntry ns/sick of cluster c1 is ignored: it is not healthy\n"},
		{"none", "WorkloadEntry ns/none of cluster c1 is ignored: it does not exist\n"},
	} {
		key := registry.WorkloadKey{Kind: registry.WorkloadEntry, Namespace: "ns", Name: test.name}
		diff(t, test.name, strings.Split(explain.Workload(s.registry, key).String(), "\n"), strings.Split(test.want, "\n"))
	}
	diff(t, "pod", explain.Workload(s.registry, registry.WorkloadKey{Cluster: "c2", Namespace: "ns", Name: "p"}).String(),
		"Pod ns/p of cluster c2 is ignored: no registry has announced it\n")
}

// TestVerify makes the registry wrong by breaking a promise: the network of an
// address changes without a word.
func TestVerify(t *testing.T) {
	t.Parallel()
	network := "n1"
	s := newSystem(t, serviceentry.Options{NetworkOf: func(string, registry.Labels) string { return network }})
	s.apply(entry("a", nil, "a.com", "1.1.1.1"))
	diff(t, "Verify", explain.Verify(s.registry), []explain.Difference(nil))
	network = "n2"
	var got []string
	for _, d := range explain.Verify(s.registry) {
		what, _, _ := strings.Cut(d.String(), ": ")
		got = append(got, what)
		if !strings.Contains(d.Value, map[bool]string{true: "Network:n2", false: "Network:n1"}[d.Missing]) {
			t.Errorf("%s: the network is not the one expected", d)
		}
	}
	diff(t, "Verify after a silent change", got, []string{
		"missing endpoint of ns/a.com", "missing instance at 1.1.1.1", "unexpected endpoint of ns/a.com", "unexpected instance at 1.1.1.1",
	})
	s.recorder.take()
	s.registry.UpdateMesh(serviceentry.Mesh{})
	s.expect("UpdateMesh", "eds ns/a.com [1.1.1.1:80]")
}

// TestVerifyServices: what has not been delivered yet is missing.
func TestVerifyServices(t *testing.T) {
	t.Parallel()
	s := newSystem(t, serviceentry.Options{})
	s.apply(entry("a", nil, "a.com"))
	s.write(with(entry("a", nil, "a.com"), func(c *configstore.Config) { c.Labels = map[string]string{"l": "1"} }))
	var got []string
	for _, d := range explain.Verify(s.registry) {
		what, _, _ := strings.Cut(d.String(), ": ")
		got = append(got, what)
	}
	diff(t, "Verify", got, []string{"missing service ns/a/a.com/0.0.0.0", "unexpected service ns/a/a.com/0.0.0.0"})
	s.cache.Drain()
	diff(t, "Verify after delivery", explain.Verify(s.registry), []explain.Difference(nil))
}
