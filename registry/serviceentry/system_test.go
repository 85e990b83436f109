// SPDX-License-Identifier: Apache-2.0

package serviceentry_test

import (
	"fmt"
	"testing"
	"time"

	meta "istio.io/api/meta/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/serviceentry"
	"github.com/pilotkit/pilotkit/registry/serviceentry/explain"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// system is a registry with its cache and a recording updater.
type system struct {
	t        *testing.T
	cache    *memory.Controller
	registry *serviceentry.Controller
	recorder *recorder
	created  int
}

func newSystem(t *testing.T, options serviceentry.Options) *system {
	t.Helper()
	return newSystemWith(t, options, updates)
}

// updates makes the recorder itself the updater.
func updates(r *recorder) xdsupdate.XDSUpdater { return r }

func newSystemWith(t *testing.T, options serviceentry.Options, updater func(*recorder) xdsupdate.XDSUpdater) *system {
	t.Helper()
	if options.ClusterID == "" {
		options.ClusterID = "c1"
	}
	s := &system{t: t, cache: memory.NewController(memory.Make(istio.Schemas())), recorder: newRecorder(t)}
	s.registry = serviceentry.New(s.cache, updater(s.recorder), options)
	s.cache.Drain()
	return s
}

// write creates or updates objects without delivering events. New objects are
// each a second younger than the one before.
func (s *system) write(configs ...configstore.Config) {
	s.t.Helper()
	for _, c := range configs {
		var err error
		if s.cache.Get(c.GroupVersionKind, c.Name, c.Namespace) != nil {
			_, err = s.cache.Update(c)
		} else {
			if c.CreationTimestamp.IsZero() {
				c.CreationTimestamp = time.Date(2026, 1, 1, 0, 0, s.created, 0, time.UTC)
				s.created++
			}
			_, err = s.cache.Create(c)
		}
		if err != nil {
			s.t.Fatal(err)
		}
	}
}

// apply writes objects, one after the other, each with all its effects.
func (s *system) apply(configs ...configstore.Config) {
	s.t.Helper()
	for _, c := range configs {
		s.write(c)
		s.cache.Drain()
	}
}

func (s *system) delete(kind configstore.GroupVersionKind, namespace, name string) {
	s.t.Helper()
	if err := s.cache.Delete(kind, name, namespace, nil); err != nil {
		s.t.Fatal(err)
	}
	s.cache.Drain()
}

// expect compares the calls since the last one.
func (s *system) expect(what string, want ...string) {
	s.t.Helper()
	diff(s.t, "calls after "+what, s.recorder.take(), want)
	for _, d := range explain.Verify(s.registry) {
		s.t.Errorf("after %s: %s", what, d)
	}
}

// entry makes a ServiceEntry; edit may change its spec and metadata.
func entry(name string, edit func(*networking.ServiceEntry), host string, endpoints ...string) configstore.Config {
	spec := &networking.ServiceEntry{
		Hosts:      []string{host},
		Ports:      []*networking.ServicePort{{Number: 80, Name: "http", Protocol: "HTTP"}},
		Resolution: networking.ServiceEntry_STATIC,
	}
	for _, e := range endpoints {
		spec.Endpoints = append(spec.Endpoints, &networking.WorkloadEntry{Address: e})
	}
	if edit != nil {
		edit(spec)
	}
	return configstore.Config{
		Meta: configstore.Meta{GroupVersionKind: istio.ServiceEntry, Namespace: "ns", Name: name}, Spec: spec,
	}
}

// selecting is an edit for entry: it selects app=web.
func selecting(spec *networking.ServiceEntry) { selectingApp("web")(spec) }

func selectingApp(app string) func(*networking.ServiceEntry) {
	return func(spec *networking.ServiceEntry) {
		spec.WorkloadSelector = &networking.WorkloadSelector{Labels: map[string]string{"app": app}}
	}
}

func dns(spec *networking.ServiceEntry) { spec.Resolution = networking.ServiceEntry_DNS }

func roundRobin(spec *networking.ServiceEntry) {
	spec.Resolution = networking.ServiceEntry_DNS_ROUND_ROBIN
}

func edits(all ...func(*networking.ServiceEntry)) func(*networking.ServiceEntry) {
	return func(spec *networking.ServiceEntry) {
		for _, edit := range all {
			edit(spec)
		}
	}
}

// workloadEntry makes a WorkloadEntry with the label app=web, or with others.
func workloadEntry(name, address string, labels map[string]string) configstore.Config {
	if labels == nil {
		labels = map[string]string{"app": "web"}
	}
	return configstore.Config{
		Meta: configstore.Meta{GroupVersionKind: istio.WorkloadEntry, Namespace: "ns", Name: name},
		Spec: &networking.WorkloadEntry{Address: address, Labels: labels},
	}
}

// checked adds health checks to a WorkloadEntry, with what they found.
func checked(c configstore.Config, status string) configstore.Config {
	c.Annotations = map[string]string{"proxy.istio.io/health-checks-enabled": "true"}
	c.Status = &meta.IstioStatus{Conditions: []*meta.IstioCondition{{Type: "Healthy", Status: status}}}
	return c
}

// pod makes a workload of another registry with the label app=web, or others.
func pod(name string, labels registry.Labels, addresses ...string) *registry.WorkloadInstance {
	if labels == nil {
		labels = registry.Labels{"app": "web"}
	}
	return &registry.WorkloadInstance{
		Cluster: "c1", Kind: registry.Pod, Namespace: "ns", Name: name,
		Endpoint: &registry.Endpoint{
			Addresses: addresses, WorkloadName: name,
			Shared: &registry.EndpointAttributes{Labels: labels, Namespace: "ns", ClusterID: "c1"},
		},
	}
}

// targets writes what a proxy is, as "object/hostname/address:port>endpointPort".
func (s *system) targets(namespace string, ips ...string) []string {
	var out []string
	for _, i := range s.registry.GetProxyServiceInstances(&registry.Proxy{Namespace: namespace, IPAddresses: ips}) {
		out = append(out, fmt.Sprintf("%s/%s/%s:%d>%d", i.Service.Attributes.ObjectName, i.Service.Hostname,
			i.Service.DefaultAddress, i.ServicePort.Number, i.Endpoint.EndpointPort))
	}
	return out
}
