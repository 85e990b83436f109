// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pilotkit/pilotkit/registry/serviceentry/explain"
)

// TestUpdatersAgree plays random scenarios, of which there is no recording, with
// an updater that takes complete lists and with one that takes deltas: both must
// see the same, and neither anything that changes nothing.
func TestUpdatersAgree(t *testing.T) {
	scenarios := uint64(12)
	if testing.Short() {
		scenarios = 4
	}
	for seed := range scenarios {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			s := randomScenario(rand.New(rand.NewPCG(seed, 5)))
			lists, deltas := start(t, s, false), start(t, s, true)
			for i, st := range s.Steps {
				a, b := observed(t, lists, st), observed(t, deltas, st)
				if diff := cmp.Diff(comparable(a), comparable(b), cmpopts.EquateEmpty()); diff != "" {
					t.Fatalf("step %d %s (-lists +deltas):\n%s", i, show(st), diff)
				}
				if bad := lists.wrong(a); len(bad) > 0 {
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

// wrong returns what can be known to be wrong without a recording.
func (p *played) wrong(o observation) []string {
	var out []string
	for _, d := range explain.Verify(p.main) {
		out = append(out, d.String())
	}
	played := pushesOf(p.before, o.Calls, normaliseReplayed, true)
	for _, c := range played.redundant {
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
	default:
		return fmt.Sprintf("%+v", st.Workload)
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
	switch r.IntN(8) {
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

func randomWorkloadEntry(r *rand.Rand, namespace string) string {
	return fmt.Sprintf(`apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: {name: %s, namespace: %s}
spec:
  address: %q
  labels: {app: %s}
  serviceAccount: %q
`, pick(r, "w1", "w2"), namespace, pick(r, "10.0.0.1", "10.1.0.1", "vm.example.org"), pick(r, "a", "b"), pick(r, "", "sa"))
}

func randomServiceEntry(r *rand.Rand, namespace string) string {
	resolution := pick(r, "STATIC", "STATIC", "DNS", "DNS_ROUND_ROBIN")
	endpoints := "workloadSelector: {labels: {app: " + pick(r, "a", "b") + "}}"
	if r.IntN(2) == 0 {
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
  - {number: %s, name: http, protocol: HTTP}
  resolution: %s
  %s
`, pick(r, "s1", "s2", "s3"), namespace, pick(r, "a.example.com", "b.example.com", "a.example.com, b.example.com"),
		pick(r, "", "10.9.9.9", "10.9.9.9, 10.9.9.8"), pick(r, "80", "81"), resolution, endpoints)
}
