// SPDX-License-Identifier: Apache-2.0

package serviceentry_test

import (
	"testing"

	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/serviceentry"
	"github.com/pilotkit/pilotkit/registry/serviceentry/explain"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// fuzzLimit bounds the input: hosts times addresses give services.
const fuzzLimit = 1024

// The bits of the third argument of FuzzHistory.
const (
	fuzzDeltas = 1 << iota
	fuzzByHash
	fuzzCanonical
	fuzzHealthChecks
	fuzzPod
	fuzzMetadata
	fuzzSecondEntry
	fuzzOneBatch
)

// FuzzHistory makes a short history of arbitrary ServiceEntries and
// WorkloadEntries that nobody has validated, a pod and a trust domain. Whatever
// they are, nothing panics, the registry shows what
// follows from the store, every report of endpoints is sorted and changes
// something, nothing is left when they are gone, and nobody modifies them.
func FuzzHistory(f *testing.F) {
	for i, seed := range fuzzSeeds() {
		f.Add(marshal(f, seed.entry), marshal(f, seed.workload), byte(i), seed.text)
		f.Add(marshal(f, seed.entry), marshal(f, seed.workload), ^byte(i), seed.text)
	}
	f.Fuzz(func(t *testing.T, entryBytes, workloadBytes []byte, bits byte, text string) {
		var e networking.ServiceEntry
		var w networking.WorkloadEntry
		if len(entryBytes)+len(workloadBytes)+len(text) > fuzzLimit ||
			proto.Unmarshal(entryBytes, &e) != nil || proto.Unmarshal(workloadBytes, &w) != nil {
			return
		}
		z := newFuzzed(t, bits)
		z.text = text
		z.run(&e, &w)
	})
}

// fuzzed is a system for objects that break the rules.
type fuzzed struct {
	*system
	bits byte
	// text is an address, a label or an annotation.
	text string
}

func newFuzzed(t *testing.T, bits byte) *fuzzed {
	t.Helper()
	store := memory.Make(istio.Schemas(), memory.Options{SkipValidation: true, DetectMutations: true})
	z := &fuzzed{bits: bits, system: &system{t: t, cache: memory.NewController(store), recorder: newRecorder(t)}}
	var updater xdsupdate.XDSUpdater = z.recorder
	if z.has(fuzzDeltas) {
		updater = deltaRecorder{z.recorder}
	}
	options := serviceentry.Options{ClusterID: "c1", CanonicalServiceForMeshExternal: z.has(fuzzCanonical)}
	if z.has(fuzzByHash) {
		options.AddressAllocation = serviceentry.AllocateByHash
	}
	z.registry = serviceentry.New(z.cache, updater, options)
	z.cache.Drain()
	return z
}

func (z *fuzzed) has(bit byte) bool { return z.bits&bit != 0 }

func (z *fuzzed) run(spec *networking.ServiceEntry, w *networking.WorkloadEntry) {
	first := z.config(istio.ServiceEntry, "e", spec)
	workload := z.config(istio.WorkloadEntry, "w", w)
	z.step("a ServiceEntry", func() { z.write(first) })
	z.step("a WorkloadEntry", func() { z.write(workload) })
	if z.has(fuzzPod) {
		p := pod("w", w.GetLabels(), z.text, "192.0.2.1")
		p.PortMap = w.GetPorts()
		z.step("a pod", func() { z.podEvent(p, registry.EventAdd) })
	}
	if z.has(fuzzSecondEntry) {
		// What the entry would be if its endpoints were its workload, too.
		second := proto.CloneOf(spec)
		second.Endpoints = append(second.Endpoints, w)
		z.step("a second ServiceEntry", func() { z.write(z.config(istio.ServiceEntry, "f", second)) })
		z.step("the first becomes as the second", func() { z.write(z.config(istio.ServiceEntry, "e", second)) })
		z.step("and back", func() { z.write(first) })
		z.step("no second any more", func() { z.remove(istio.ServiceEntry, "f") })
	}
	z.registry.UpdateMesh(serviceentry.Mesh{TrustDomain: z.text})
	z.check("another trust domain")
	z.step("no WorkloadEntry any more", func() { z.remove(istio.WorkloadEntry, "w") })
	z.podEvent(pod("w", nil), registry.EventDelete)
	z.remove(istio.ServiceEntry, "e")
	z.check("no ServiceEntry any more")
	if n := len(z.registry.Services()); n != 0 || len(z.recorder.endpoints) != 0 {
		z.t.Errorf("%d services and endpoints of %d hosts are left", n, len(z.recorder.endpoints))
	}
}

// config makes the object, with the text where metadata mean something.
func (z *fuzzed) config(kind configstore.GroupVersionKind, name string, spec proto.Message) configstore.Config {
	c := configstore.Config{Meta: configstore.Meta{GroupVersionKind: kind, Namespace: "ns", Name: name}, Spec: spec}
	if z.has(fuzzMetadata) {
		c.Labels = map[string]string{"topology.istio.io/network": z.text, "istio-locality": z.text, "app": z.text}
		c.Annotations = map[string]string{"networking.istio.io/traffic-distribution": z.text, "istio.io/connect-strategy": z.text}
	}
	if z.has(fuzzHealthChecks) && kind == istio.WorkloadEntry {
		return checked(c, z.text)
	}
	return c
}

func (z *fuzzed) remove(kind configstore.GroupVersionKind, name string) {
	if err := z.cache.Delete(kind, name, "ns", nil); err != nil {
		z.t.Fatal(err)
	}
}

func (z *fuzzed) step(what string, do func()) {
	do()
	if !z.has(fuzzOneBatch) {
		z.check(what)
	}
}

// check compares what the registry shows with the store, and with what the
// updater was called with.
func (z *fuzzed) check(what string) {
	z.t.Helper()
	z.cache.Drain()
	for _, s := range z.cache.Schemas().All() {
		z.cache.List(s.GroupVersionKind, "") // panics if an object was changed
	}
	if differences := explain.Verify(z.registry); len(differences) > 0 {
		z.t.Errorf("after %s: %d differences, the first: %s", what, len(differences), differences[0])
	}
	for _, s := range z.registry.Services() {
		if z.registry.GetService(s.Hostname) == nil {
			z.t.Errorf("after %s: GetService(%q) = nil", what, s.Hostname)
		}
		var shown []*registry.Endpoint
		for _, i := range z.registry.InstancesByPort(s, 0) {
			shown = append(shown, i.Endpoint)
			// All entries have the same ports.
			if i.ServicePort.Name != i.Endpoint.ServicePortName {
				z.t.Errorf("after %s: the instance on port %s is one on port %s", what, i.Endpoint.ServicePortName, i.ServicePort.Name)
			}
		}
		if notified := z.recorder.endpoints[s.Key()]; brief(shown) != brief(notified) {
			z.t.Errorf("after %s: %s has %s, was reported with %s", what, s.Key(), brief(shown), brief(notified))
		}
	}
	for _, ip := range []string{z.text, "1.1.1.1"} {
		z.registry.GetProxyWorkloadLabels(&registry.Proxy{IPAddresses: []string{ip}})
	}
}

type fuzzSeed struct {
	entry    *networking.ServiceEntry
	workload *networking.WorkloadEntry
	text     string
}

func fuzzSeeds() []fuzzSeed {
	var out []fuzzSeed
	addresses := []string{"1.1.1.1", "vm.example.org", "unix:///run/w.sock", "", "2001:db8::1"}
	for i, resolution := range []networking.ServiceEntry_Resolution{
		networking.ServiceEntry_STATIC, networking.ServiceEntry_DNS, networking.ServiceEntry_DNS_ROUND_ROBIN,
		networking.ServiceEntry_NONE, networking.ServiceEntry_DYNAMIC_DNS,
	} {
		labels := map[string]string{"app": "web", "security.istio.io/tlsMode": "disabled"}
		workload := &networking.WorkloadEntry{
			Address: addresses[i], Labels: labels, Ports: map[string]uint32{"http": 8080}, ServiceAccount: "sa",
			Locality: "region/zone/subzone", Network: "n", Weight: 3,
		}
		spec := &networking.ServiceEntry{
			Hosts: []string{"a.com", "*.b.com", "a.com"}, Addresses: []string{"10.0.0.1", "10.0.0.0/8", "10.1.1.1/32", "nonsense"},
			Ports: []*networking.ServicePort{
				{Number: 80, Name: "http", Protocol: "HTTP", TargetPort: 8080},
				{Number: 443, Name: "tls", Protocol: "TLS"},
				{Number: 81, Name: "other", Protocol: "?"},
				{Number: 80, Name: "again", Protocol: "?"},
			},
			Resolution: resolution, ExportTo: []string{".", "*", "."}, SubjectAltNames: []string{"spiffe://a"},
		}
		inline := proto.CloneOf(spec)
		inline.Endpoints = []*networking.WorkloadEntry{workload, workload, {Address: addresses[(i+1)%len(addresses)]}}
		spec.WorkloadSelector = &networking.WorkloadSelector{Labels: map[string]string{"app": "web"}}
		out = append(out,
			fuzzSeed{spec, workload, addresses[i]}, fuzzSeed{inline, workload, "True"},
			fuzzSeed{&networking.ServiceEntry{Hosts: []string{"c.com"}, Resolution: resolution}, &networking.WorkloadEntry{}, ""},
			// The pod has its address twice, in one form and in two.
			fuzzSeed{spec, workload, "192.0.2.1"}, fuzzSeed{spec, workload, "::ffff:192.0.2.1"},
		)
	}
	return out
}

func marshal(f *testing.F, m proto.Message) []byte {
	f.Helper()
	out, err := proto.Marshal(m)
	if err != nil {
		f.Fatal(err)
	}
	return out
}
