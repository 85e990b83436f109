// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pilotkit/pilotkit/internal/test/histories"
	"github.com/pilotkit/pilotkit/registry/serviceentry/explain"
)

// TestUpdatersAgree plays random scenarios, without a recording, with an updater for complete lists
// and with one for deltas: both must see the same, and no calls without a change.
func TestUpdatersAgree(t *testing.T) {
	for _, seed := range histories.Seeds(t, 12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			s := randomScenario(rand.New(rand.NewPCG(seed, 5)))
			lists, deltas := start(t, s, false), start(t, s, true)
			for i, st := range s.Steps {
				a, b := observed(t, lists, st), observed(t, deltas, st)
				if diff := cmp.Diff(comparable(a), comparable(b), cmpopts.EquateEmpty()); diff != "" {
					t.Fatalf("step %d %s (-lists +deltas):\n%s", i, show(st), diff)
				}
				if bad := lists.wrong(st, a); len(bad) > 0 {
					t.Fatalf("step %d %s: %v", i, show(st), bad)
				}
			}
		})
	}
}

// played is a system with the index before the next step.
type played struct {
	*system
	before indexState
}

func start(t *testing.T, s *scenario, deltas bool) *played {
	t.Helper()
	sys, err := newSystem(s, deltas)
	if err != nil {
		t.Fatal(err)
	}
	if err := sys.start(); err != nil {
		t.Fatal(err)
	}
	return &played{system: sys, before: indexState{}}
}

func observed(t *testing.T, p *played, st step) observation {
	t.Helper()
	o, err := p.step(st, observation{})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// wrong returns the errors that can be detected without a recording.
func (p *played) wrong(st step, o observation) []string {
	var out []string
	for _, d := range explain.Verify(p.main) {
		out = append(out, d.String())
	}
	played := pushesOf(p.before, o.Calls, normaliseReplayed, true)
	for _, c := range played.redundant {
		if st.ResyncEDS != nil {
			break // it asks for that
		}
		out = append(out, fmt.Sprintf("an EDSUpdate of %s/%s that changes nothing", c.Namespace, c.Hostname))
	}
	p.before = stateOf(o.EndpointIndex, normaliseReplayed)
	for _, k := range keysOf(played.after, p.before) {
		for shard := range p.before[k] {
			if !sameEndpoints(played.after[k][shard], p.before[k][shard]) {
				out = append(out, "the calls do not lead to the endpoints of "+k.String())
			}
		}
	}
	return out
}

// comparable returns what both updaters must see: all but the order of the index.
func comparable(o observation) map[string]any {
	return map[string]any{
		"calls": o.Calls, "index": stateOf(o.EndpointIndex, normaliseReplayed), "services": o.Services,
		"lookups": o.GetService, "proxies": o.Proxies, "workloads": o.WorkloadHandlerCalls, "results": outcomes(o),
	}
}

func outcomes(o observation) []string {
	var out []string
	for _, r := range o.Results {
		out = append(out, r.Outcome)
	}
	return out
}

func show(st step) string {
	switch {
	case st.Apply != nil:
		return *st.Apply
	case st.Delete != nil:
		return "delete " + st.Delete.String()
	case st.Workload != nil:
		return fmt.Sprintf("%+v", *st.Workload)
	case st.Namespace != nil:
		return fmt.Sprintf("%+v", *st.Namespace)
	case st.MeshConfig != nil:
		return *st.MeshConfig
	default:
		return "resync"
	}
}

// randomScenario makes steps over few names, labels and addresses, so that they
// often meet.
func randomScenario(r *rand.Rand) *scenario {
	s := &scenario{Options: options{ClusterID: "c", NetworkRules: []networkRule{{CIDR: "10.1.0.0/16", Network: "n"}}}}
	for _, ip := range []string{"10.0.0.1", "10.1.0.1", "2001:db8::1"} {
		s.Proxies = append(s.Proxies, proxy{IP: ip, Namespace: "ns1"}, proxy{IP: ip})
	}
	for range 60 {
		s.Steps = append(s.Steps, randomStep(r))
	}
	return s
}

func pick(r *rand.Rand, choices ...string) string { return choices[r.IntN(len(choices))] }

func randomStep(r *rand.Rand) step {
	namespace := pick(r, "ns1", "ns1", "ns2")
	switch r.IntN(9) {
	case 8:
		return randomSetting(r, namespace)
	case 0:
		kind, name := "ServiceEntry", pick(r, "s1", "s2", "s3")
		if r.IntN(2) == 0 {
			kind, name = "WorkloadEntry", pick(r, "w1", "w2")
		}
		return step{Delete: &objectRef{Kind: kind, Namespace: namespace, Name: name}}
	case 1, 2:
		doc := randomWorkloadEntry(r, namespace)
		return step{Apply: &doc}
	case 3, 4:
		return step{Workload: &workload{
			Event: pick(r, eventAdd, eventUpdate, eventDelete), Name: pick(r, "p1", "w1"), Namespace: namespace,
			Addresses: [][]string{{"10.0.0.1"}, {"10.1.0.1"}, {"10.0.0.1", "2001:db8::1"}}[r.IntN(3)],
			Labels:    map[string]string{"app": pick(r, "a", "b")}, Cluster: pick(r, "c", "d"),
			Health: pick(r, "", "UnHealthy", "Healthy"), ServiceAccount: pick(r, "", "spiffe://x/ns/a/sa/b"),
		}}
	default:
		var docs []string
		for range 1 + r.IntN(2) {
			docs = append(docs, randomServiceEntry(r, namespace))
		}
		text := strings.Join(docs, "---\n")
		return step{Apply: &text}
	}
}

// randomSetting changes a setting that all entries, or those of a namespace, depend on.
func randomSetting(r *rand.Rand, name string) step {
	switch r.IntN(3) {
	case 0:
		mesh := pick(r, "{}", "trustDomain: td2", "serviceEntryVisibility: {defaultVisibility: NAMESPACE}",
			"serviceEntryVisibility: {policies: [{visibility: NONE, matchingRules: [{namespaceSelector: {matchLabels: {hidden: 'yes'}}}]}]}")
		return step{MeshConfig: &mesh}
	case 1:
		again := true
		return step{ResyncEDS: &again}
	default:
		return step{Namespace: &namespace{
			Name: name, Delete: r.IntN(3) == 0, Labels: map[string]string{"hidden": pick(r, "yes", "no")},
			Annotations: map[string]string{"networking.istio.io/traffic-distribution": pick(r, "PreferClose", "any")},
		}}
	}
}

func randomWorkloadEntry(r *rand.Rand, namespace string) string {
	return fmt.Sprintf(`apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: {name: %s, namespace: %s}
spec:
  address: %q
  labels: {app: %s, %s}
  serviceAccount: %q
  %s
`, pick(r, "w1", "w2"), namespace, pick(r, "10.0.0.1", "10.1.0.1", "vm.example.org"), pick(r, "a", "b"),
		pick(r, "v: a", "istio-locality: r.z.s", "security.istio.io/tlsMode: disabled"), pick(r, "", "sa"),
		pick(r, "", "network: n2", "locality: r/z", "weight: 3", "ports: {http: 8081}"))
}

func randomServiceEntry(r *rand.Rand, namespace string) string {
	resolution := pick(r, "STATIC", "STATIC", "DNS", "DNS_ROUND_ROBIN", "NONE")
	endpoints := "workloadSelector: {labels: {app: " + pick(r, "a", "b") + "}}"
	switch {
	case resolution == "NONE" || r.IntN(6) == 0:
		endpoints = ""
	case r.IntN(2) == 0:
		endpoints = "endpoints: [{address: 10.0.0.1}]"
		if resolution != "DNS_ROUND_ROBIN" && r.IntN(2) == 0 {
			endpoints = "endpoints: [{address: 10.0.0.1}, {address: 10.1.0.1, labels: {v: " + pick(r, `"1"`, `"2"`) + "}}]"
		}
	}
	return fmt.Sprintf(`apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: %s, namespace: %s}
spec:
  hosts: [%s]
  addresses: [%s]
  ports:
  - {number: %s, name: http, protocol: HTTP%s}
%s
  exportTo: [%s]
  subjectAltNames: [%s]
  location: %s
  resolution: %s
  %s
`, pick(r, "s1", "s2", "s3"), namespace, pick(r, "a.example.com", "b.example.com", "a.example.com, b.example.com"),
		pick(r, "", "10.9.9.9", "10.9.9.9, 10.9.9.8"), pick(r, "80", "81"),
		pick(r, "", "", ", targetPort: 8080"), pick(r, "", "  - {number: 443, name: tls, protocol: TLS}"),
		pick(r, "", ".", "'*'", "'~'"), pick(r, "", "", "spiffe://x/ns/a/sa/b"), pick(r, "MESH_INTERNAL", "MESH_EXTERNAL"), resolution, endpoints)
}
