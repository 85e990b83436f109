// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/pilotkit/pilotkit/internal/test/corpus"
)

// begin starts the system of a scenario that is written here.
func begin(t *testing.T, text string) (*scenario, *system) {
	t.Helper()
	s := &scenario{}
	dec := yaml.NewDecoder(strings.NewReader(text))
	dec.KnownFields(true)
	if err := dec.Decode(s); err != nil {
		t.Fatal(err)
	}
	sys, err := newSystem(s, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := sys.start(); err != nil {
		t.Fatal(err)
	}
	return s, sys
}

// play runs the steps of a scenario without a recording and returns the observation after each.
func play(t *testing.T, text string) []observation {
	t.Helper()
	s, sys := begin(t, text)
	sys.observe(nil)
	var out []observation
	for i, st := range s.Steps {
		if err := corpus.Check(st); err != nil {
			t.Fatalf("step %d %v", i, err)
		}
		o, err := sys.step(st, observation{})
		if err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
		out = append(out, o)
	}
	return out
}

// expectEach compares one line about each observation.
func expectEach(t *testing.T, observations []observation, about func(observation) string, want ...string) {
	t.Helper()
	got := make([]string, len(observations))
	for i, o := range observations {
		got[i] = about(o)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n\t%q\nwant\n\t%q", got, want)
	}
}

const entryWithAccount = `
- apply: |
    apiVersion: networking.istio.io/v1
    kind: ServiceEntry
    metadata: {name: svc, namespace: ns1}
    spec:
      hosts: [a.example.com]
      ports:
      - {number: 80, name: http, protocol: HTTP}
      resolution: STATIC
      endpoints:
      - {address: 2.2.2.2, serviceAccount: sa}
`

func aboutAccounts(o observation) string {
	return fmt.Sprint(o.EndpointIndex[0].ServiceAccounts, len(o.Calls) > 0)
}

func TestMeshConfigStep(t *testing.T) {
	got := play(t, `
options: {clusterID: c, meshConfig: "trustDomain: first.example"}
steps:`+entryWithAccount+`
- meshConfig: |
    trustDomain: second.example
    accessLogFile: /dev/stdout
- meshConfig: ""
`)
	expectEach(t, got, aboutAccounts, "[spiffe://first.example/ns/ns1/sa/sa] true",
		"[spiffe://second.example/ns/ns1/sa/sa] true", "[spiffe://cluster.local/ns/ns1/sa/sa] true")
}

func TestVisibilityAndNamespaceSteps(t *testing.T) {
	got := play(t, `
options:
  clusterID: c
  meshConfig: |
    serviceEntryVisibility:
      applyToSidecars: true
      policies:
      - visibility: NONE
        matchingRules:
        - namespaceSelector:
            matchLabels: {team: a}
            matchExpressions:
            - {key: env, operator: NotIn, values: [prod]}
      - visibility: NAMESPACE
        matchingRules:
        - namespaceSelector: {matchLabels: {team: a}}
steps:`+entryWithAccount+`
- namespace: {name: ns1, labels: {team: a}}
- namespace: {name: ns1, labels: {team: a, env: prod}, annotations: {networking.istio.io/traffic-distribution: PreferSameNode}}
- namespace: {name: ns1, delete: true}
`)
	about := func(o observation) string {
		return spellVisibility(o.Services[0].Visibility) + "|" + o.Services[0].TrafficDistribution
	}
	expectEach(t, got, about, "|", "None|", "Private|PreferSameNode", "|")
}

func TestResyncStep(t *testing.T) {
	got := play(t, "options: {clusterID: c}\nsteps:"+entryWithAccount+"- resyncEDS: true\n")
	about := func(o observation) string {
		i := slices.IndexFunc(o.Calls, isCall(callEDSUpdate))
		if i < 0 {
			return "no EDSUpdate"
		}
		return fmt.Sprint(o.Calls[i].PushType, len(o.Calls[i].Endpoints))
	}
	expectEach(t, got, about, "FullPush1", "NoPush1")
}

const workloadEntryVM = `
- apply: |
    apiVersion: networking.istio.io/v1
    kind: WorkloadEntry
    metadata: {name: vm, namespace: ns1}
    spec: {address: 3.3.3.3, labels: {zone: dmz}}
`

func TestWorkloadEntryOnly(t *testing.T) {
	got := play(t, `
options:
  clusterID: c
  workloadEntryOnly: true
  networkRules:
  - {cidr: 10.0.0.0/8, network: ten}
  - {cidr: 3.0.0.0/8, labels: {zone: dmz}, network: dmz}
steps:`+entryWithAccount+workloadEntryVM)
	about := func(o observation) string {
		out := fmt.Sprint(len(o.Services), len(o.EndpointIndex))
		for _, c := range o.WorkloadHandlerCalls {
			out += fmt.Sprint(" ", c.Event, " ", c.Name, " ", c.Endpoint.Network)
		}
		return out
	}
	expectEach(t, got, about, "0 0", "0 0 add vm dmz")
}

func TestSkipValidation(t *testing.T) {
	const invalid = `
- apply: |
    apiVersion: networking.istio.io/v1
    kind: ServiceEntry
    metadata: {name: none, namespace: ns1}
    spec: {hosts: []}
`
	about := func(o observation) string { return o.Results[0].Outcome }
	expectEach(t, play(t, "options: {clusterID: c}\nsteps:"+invalid), about, outcomeInvalid)
	expectEach(t, play(t, "options: {clusterID: c, skipValidation: true}\nsteps:"+invalid), about, outcomeOK)
}

func TestUnknownFieldIsIgnored(t *testing.T) {
	about := func(o observation) string { return o.Results[0].Outcome }
	expectEach(t, play(t, `
options: {clusterID: c}
steps:
- apply: |
    apiVersion: networking.istio.io/v1
    kind: WorkloadEntry
    metadata: {name: vm, namespace: ns1, madeUp: 1}
    spec: {address: 3.3.3.3, madeUp: 1}
`), about, outcomeOK)
}

func TestUnknownStepIsRefused(t *testing.T) {
	if err := corpus.Check(step{}); err == nil {
		t.Error("a step without action is accepted")
	}
	s := &scenario{}
	dec := yaml.NewDecoder(strings.NewReader("steps:\n- explode: true\n"))
	dec.KnownFields(true)
	if err := dec.Decode(s); err == nil {
		t.Error("an unknown action is accepted")
	}
}

// A step that cannot be run is an error of its scenario and stops no other.
func TestImpossibleStepIsAnError(t *testing.T) {
	const registries = `registries: [{id: remote, type: workloadEntry, cluster: west}]`
	for _, text := range []string{
		"options: {storeOnly: true}\nsteps: [{resyncEDS: true}]",
		"steps: [{aggregate: {op: addRegistry, id: one}}]",
		registries + "\nsteps: [{aggregate: {op: addRegistry, id: one}}]",
		registries + "\nsteps: [{aggregate: {op: removeService, id: remote, hostname: a.local}}]",
		registries + "\nsteps: [{aggregate: {op: explode}}]",
		"steps: [{registry: one, apply: ''}]",
		"steps: [{registry: one, delete: {kind: ServiceEntry}}]",
	} {
		s, sys := begin(t, text)
		if _, err := sys.step(s.Steps[0], observation{}); err == nil {
			t.Errorf("no error from %q", text)
		}
	}
}

func TestAggregateSteps(t *testing.T) {
	got := play(t, `
options: {clusterID: c, serviceHandlersForClusters: [east]}
registries:
- id: one
  type: static
  provider: Kubernetes
  cluster: east
  services: [{hostname: a.local, namespace: ns1, defaultAddress: 10.0.0.1, ports: [{name: http, port: 80, protocol: HTTP}]}]
  gateways: [{network: n1, cluster: east, addr: 1.1.1.1, port: 15443}]
- id: two
  type: static
  provider: Kubernetes
  cluster: east
  deferred: true
  services: [{hostname: b.local, namespace: ns1, defaultAddress: 10.0.0.2, ports: [{name: http, port: 80, protocol: HTTP}]}]
- {id: remote, type: workloadEntry, cluster: west}
steps:
- aggregate: {op: updateRegistry, id: two}
- aggregate: {op: addService, id: one, service: {hostname: late.local, namespace: ns1, ports: [{name: http, port: 80}]}}
- aggregate: {op: deleteRegistryIfCurrent, id: one}
- aggregate: {op: addService, id: two, service: {hostname: c.local, namespace: ns1, ports: [{name: http, port: 80}]}}
- aggregate: {op: unregisterHandlersForCluster, cluster: east}
- aggregate: {op: removeService, id: two, hostname: c.local}
- aggregate: {op: deleteRegistryIfCurrent, id: two}
`)
	about := func(o observation) string {
		var out []string
		for _, s := range o.Services {
			out = append(out, s.Hostname)
		}
		for _, c := range o.ServiceHandlerCalls {
			out = append(out, c.Handler+" "+c.Event)
		}
		for _, r := range o.Results {
			out = append(out, r.Outcome)
		}
		return fmt.Sprint(len(o.NetworkGateways), len(o.RegistryOrder), " ", strings.Join(out, ", "))
	}
	expectEach(t, got, about,
		"0 3 b.local, aggregate add, aggregate/east add, aggregate delete, aggregate/east delete",
		"0 3 b.local",
		"0 3 b.local, notfound",
		"0 3 b.local, c.local, aggregate add, aggregate/east add",
		"0 3 b.local, c.local",
		"0 3 b.local, aggregate delete",
		"0 2 aggregate delete, ok")
}
