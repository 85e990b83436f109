// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/pilotkit/pilotkit/registry"
)

// play is a system that a test drives, object by object, and looks at in words.
type play struct {
	*testing.T
	sys *system
}

// decision is a row of DECISIONS.md, a deliberate difference from Istio's registry: its number and
// the decision.
type decision struct {
	row  string
	is   string
	with scenarioOpts
	// more are further clusters; the first is "one".
	more []clusterSpec
	test func(p *play)
}

func testDecisions(t *testing.T, all []decision) {
	t.Helper()
	t.Parallel()
	for _, d := range all {
		t.Run(d.row+" "+d.is, func(t *testing.T) {
			t.Parallel()
			for _, deltas := range []bool{false, true} {
				p := newPlay(t, d.with, d.more, deltas)
				d.test(p)
				p.verify()
			}
		})
	}
}

func newPlay(t *testing.T, options scenarioOpts, more []clusterSpec, deltas bool) *play {
	t.Helper()
	if options.ClusterID == "" {
		options.ClusterID = "one"
	}
	sys, err := newSystem(&scenario{Options: options, Clusters: more}, deltas)
	if err != nil {
		t.Fatal(err)
	}
	p := &play{T: t, sys: sys}
	sys.start()
	p.forget()
	return p
}

// verify compares each registry with a computation from scratch.
func (p *play) verify() {
	p.Helper()
	for _, c := range p.sys.clusters {
		if c.kube == nil {
			continue
		}
		if wrong, err := c.kube.Verify(p.Context()); err != nil || len(wrong) > 0 {
			p.Errorf("Verify of %s: %v, %v", c.id, wrong, err)
		}
	}
}

// forget drops the calls up to now.
func (p *play) forget() {
	p.sys.recorder.take()
	p.sys.services, p.sys.workloads, p.sys.gatewayCalls = nil, nil, 0
}

func (p *play) step(s step) {
	p.Helper()
	p.forget()
	if err := p.sys.step(s, func() {}); err != nil {
		p.Fatal(err)
	}
}

// apply writes objects to the first cluster, one after the other.
func (p *play) apply(objects ...string) {
	p.Helper()
	p.applyTo("", objects...)
}

func (p *play) applyTo(cluster string, objects ...string) {
	p.Helper()
	text := strings.Join(objects, "")
	p.step(step{Cluster: cluster, Apply: &text})
}

func (p *play) delete(kind, name string) {
	p.Helper()
	namespace := "ns"
	if kind == "Node" || kind == "Namespace" {
		namespace = ""
	}
	p.step(step{Delete: &objectRef{Kind: kind, Namespace: namespace, Name: name}})
}

func (p *play) mesh(text string) {
	p.Helper()
	p.step(step{MeshConfig: &text})
}

func (p *play) networks(text string) {
	p.Helper()
	p.step(step{MeshNetworks: &text})
}

func (p *play) lifecycle(op, cluster string) {
	p.Helper()
	p.step(step{Lifecycle: &lifecycle{Op: op, Cluster: cluster}})
}

func hostOf(service string) string {
	if strings.Contains(service, ".") {
		return service
	}
	return service + ".ns.svc.cluster.local"
}

// endpoints returns the updater's endpoints of a service: for each endpoint the addresses and some
// fields, as in recordings. A service is given by its name in the namespace ns, or by its host.
func (p *play) endpoints(service string, fields ...string) []string {
	var out []string
	for k, all := range p.sys.viewIndex() {
		if k.hostname != hostOf(service) {
			continue
		}
		for _, r := range all {
			out = append(out, words(r, append([]string{"addresses"}, fields...)...))
		}
	}
	slices.Sort(out)
	return out
}

// known reports whether the updater has a key of a service.
func (p *play) known(service string) bool {
	for e := range p.sys.recorder.index.All() {
		if string(e.Hostname()) == hostOf(service) {
			return true
		}
	}
	return false
}

// words returns fields of a record; "a.b" is b in a.
func words(r record, fields ...string) string {
	out := make([]string, len(fields))
	for i, f := range fields {
		if key, label, nested := strings.Cut(f, "."); nested {
			m, _ := r[key].(map[string]any)
			out[i] = fmt.Sprint(m[label])
		} else if list, ok := r[f].([]any); ok {
			out[i] = strings.Trim(fmt.Sprint(list), "[]")
		} else {
			out[i] = fmt.Sprint(r[f])
		}
		out[i] = strings.TrimPrefix(strings.ReplaceAll(out[i], "<nil>", "-"), "spiffe://")
	}
	return strings.Join(out, " ")
}

// service returns fields of a service as the aggregate shows it.
func (p *play) service(name string, fields ...string) string {
	s := p.sys.registry.GetService(registry.Hostname(hostOf(name)))
	if s == nil {
		return "none"
	}
	return words(viewService(s), fields...)
}

// notified returns what workload handlers were called with in the last step: the event,
// the name, and fields of the endpoint.
func (p *play) notified(fields ...string) []string {
	var out []string
	for _, w := range p.sys.workloads {
		if w.workload != nil && strings.HasPrefix(w.registry, "Kubernetes/") {
			r := viewEndpoint(w.workload.Endpoint)
			out = append(out, strings.TrimSpace(w.event.String()+" "+w.workload.Name+" "+words(r, fields...)))
		}
	}
	slices.Sort(out)
	return out
}

// calls returns the calls of the updater in the last step, except calls with some other name.
func (p *play) calls(name string) []string {
	var out []string
	for _, c := range p.sys.recorder.take() {
		if c.name != name {
			continue
		}
		switch name {
		case callSvcUpdate:
			out = append(out, c.event.String()+" "+string(c.hostname))
		case callConfigUpdate:
			for reason := range c.request.Reason {
				out = append(out, fmt.Sprintf("%s forced=%t", reason, c.request.Forced))
			}
		case callProxyUpdate:
			out = append(out, string(c.cluster)+" "+c.ip)
		default:
			out = append(out, string(c.hostname))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// gateways returns the network gateways of the aggregate.
func (p *play) gateways() []string {
	var out []string
	for _, g := range viewGateways(p.sys) {
		out = append(out, words(g, "network", "addr", "port"))
	}
	slices.Sort(out)
	return out
}

// targets returns the instances of a proxy.
func (p *play) targets(spec proxySpec) []string {
	var out []string
	for _, i := range p.sys.registry.GetProxyServiceInstances(p.sys.viewProxy(spec)) {
		name, _, _ := strings.Cut(string(i.Service.Hostname), ".")
		out = append(out, name+" "+words(viewTarget(i), "portName", "targetPort"))
	}
	slices.Sort(out)
	return out
}

func (p *play) labelsOf(spec proxySpec) registry.Labels {
	return p.sys.registry.GetProxyWorkloadLabels(p.sys.viewProxy(spec))
}

// is compares lists.
func (p *play) is(what string, got []string, want ...string) {
	p.Helper()
	if len(got)+len(want) == 0 {
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		p.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func (p *play) equal(what string, got, want any) {
	p.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		p.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// The functions below write objects of the namespace ns with usual fields. Further arguments are
// parts that are merged into the object.

func newObject(base string, more ...string) string {
	var out map[string]any
	for _, text := range append([]string{base}, more...) {
		part := map[string]any{}
		if err := yaml.Unmarshal([]byte(text), &part); err != nil {
			panic(text + ": " + err.Error())
		}
		out = putOver(out, part)
	}
	data, err := json.Marshal(out)
	if err != nil {
		panic(err)
	}
	return string(data) + "\n---\n"
}

// putOver merges the entries of part into base; null removes an entry.
func putOver(base, part map[string]any) map[string]any {
	if base == nil {
		base = map[string]any{}
	}
	for k, v := range part {
		inner, isMap := v.(map[string]any)
		former, wasMap := base[k].(map[string]any)
		switch {
		case v == nil:
			delete(base, k)
		case isMap && wasMap:
			base[k] = putOver(former, inner)
		default:
			base[k] = v
		}
	}
	return base
}

// serviceObject is a service whose selector is the label app of its name.
func serviceObject(name string, more ...string) string {
	return newObject(fmt.Sprintf(`
kind: Service
metadata: {name: %s, namespace: ns}
spec:
  type: ClusterIP
  clusterIP: 10.96.0.1
  selector: {app: %[1]s}
  ports: [{name: http, port: 80, protocol: TCP, targetPort: 8080}]
`, name), more...)
}

// podObject is a running, ready pod with the label app: a.
func podObject(name, address string, more ...string) string {
	return newObject(fmt.Sprintf(`
kind: Pod
metadata: {name: %s, namespace: ns, labels: {app: a}}
spec: {serviceAccountName: sa, containers: [{name: c}]}
status: {phase: Running, podIP: %q, podIPs: [{ip: %q}], conditions: [{type: Ready, status: 'True'}]}
`, name, address, address), more...)
}

const unready = `status: {conditions: [{type: Ready, status: 'False'}]}`

// sliceObject is a slice of a service; each endpoint is "address", "address pod",
// or a map.
func sliceObject(name, service string, endpoints ...string) string {
	for i, e := range endpoints {
		if strings.HasPrefix(e, "{") {
			continue
		}
		address, pod, named := strings.Cut(e, " ")
		endpoints[i] = fmt.Sprintf("{addresses: [%q]}", address)
		if named {
			endpoints[i] = fmt.Sprintf("{addresses: [%q], targetRef: {kind: Pod, name: %s, namespace: ns}}", address, pod)
		}
	}
	return newObject(fmt.Sprintf(`
kind: EndpointSlice
metadata: {name: %s, namespace: ns, labels: {kubernetes.io/service-name: %s}}
addressType: IPv4
ports: [{name: http, port: 8080}]
endpoints: [%s]
`, name, service, strings.Join(endpoints, ", ")))
}

func nodeObject(name, address string, more ...string) string {
	base := fmt.Sprintf("{kind: Node, metadata: {name: %s}, status: {addresses: [{type: ExternalIP, address: %q}]}}", name, address)
	return newObject(base, more...)
}

func namespaceObject(name string, more ...string) string {
	return newObject(fmt.Sprintf("{kind: Namespace, metadata: {name: %s}}", name), more...)
}

func workloadEntry(name, address string, more ...string) string {
	return newObject(fmt.Sprintf(`
apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: {name: %s, namespace: ns}
spec: {address: %q, labels: {app: a}}
`, name, address), more...)
}

// serviceEntry selects workloads with the label app: a.
func serviceEntry(host string) string {
	return newObject(fmt.Sprintf(`
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: e, namespace: ns}
spec:
  hosts: [%s]
  resolution: STATIC
  location: MESH_INTERNAL
  ports: [{name: http, number: 80, protocol: HTTP}]
  workloadSelector: {labels: {app: a}}
`, host))
}

// everyOrder calls do with the objects in every order.
func everyOrder(objects []string, do func(inOrder []string)) {
	if len(objects) == 0 {
		do(nil)
		return
	}
	for i, first := range objects {
		others := append(slices.Clone(objects[:i]), objects[i+1:]...)
		everyOrder(others, func(rest []string) { do(append([]string{first}, rest...)) })
	}
}
