// SPDX-License-Identifier: Apache-2.0

package serviceentry_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/pilotkit/pilotkit/registry"
)

// check compares everything with the oracle.
func (m *modelSystem) check(before, after *outcome) {
	m.t.Helper()
	m.checkServices(after)
	m.checkEndpoints(after)
	m.checkProxies(after)
	m.checkCalls(before, after, m.recorder.Take())
	clear(m.touched)
	notified := map[string]string{}
	for name, wi := range m.workloads {
		notified[name] = describeWorkload(wi.Endpoint, wi.PortMap)
	}
	m.equal("workloads that handlers know", after.announced, notified)
}

func (m *modelSystem) equal(what string, want, got any) {
	m.t.Helper()
	if !reflect.DeepEqual(want, got) { // much cheaper than a diff, which is empty nearly always
		m.t.Errorf("%s (-want +got):\n%s", what, cmp.Diff(want, got))
	}
}

func (m *modelSystem) checkServices(after *outcome) {
	m.t.Helper()
	shown, notified := map[string][]string{}, map[string][]string{}
	all := m.registry.Services()
	for _, s := range all {
		shown[s.Key()] = append(shown[s.Key()], m.showService(s))
	}
	for _, s := range m.services {
		notified[s.Key()] = append(notified[s.Key()], m.showService(s))
	}
	for _, byKey := range []map[string][]string{shown, notified} {
		for _, list := range byKey {
			slices.Sort(list)
		}
	}
	m.equal("Services", after.services, shown)
	m.equal("services that handlers know", after.services, notified)
	if !slices.IsSortedFunc(all, registry.CompareServices) {
		m.t.Error("Services is not sorted")
	}
	m.checkGetService(all)
	m.checkAllocation(all)
}

// checkAllocation: services without an address get one in byHash, those of a host
// the same, those of two hosts never.
func (m *modelSystem) checkAllocation(all []*registry.Service) {
	m.t.Helper()
	if !m.byHash {
		return
	}
	owner, address := map[string]string{}, map[string]string{}
	for _, s := range all {
		eligible := s.DefaultAddress == registry.UnspecifiedAddress && s.Resolution != registry.Passthrough
		for _, a := range []string{s.AutoAllocatedIPv4, s.AutoAllocatedIPv6} {
			if (a != "") != eligible || a != "" && owner[a] != "" && owner[a] != s.Key() {
				m.t.Errorf("%s has the address %q, should have one: %t, owner: %q", s.ResourceName(), a, eligible, owner[a])
			}
			owner[a] = s.Key()
		}
		if other := address[s.Key()]; eligible && other != "" && other != s.AutoAllocatedIPv4 {
			m.t.Errorf("%s has the addresses %s and %s", s.Key(), other, s.AutoAllocatedIPv4)
		} else if eligible {
			address[s.Key()] = s.AutoAllocatedIPv4
		}
	}
}

// checkGetService: the oldest service of a host name wins, then namespace, name and
// the order of addresses.
func (m *modelSystem) checkGetService(all []*registry.Service) {
	m.t.Helper()
	for _, host := range []registry.Hostname{"one.example.com", "two.example.com", "none.example.com"} {
		var best *registry.Service
		for _, s := range all {
			if s.Hostname != host {
				continue
			}
			if best == nil || older(s, best) {
				best = s
			}
		}
		got := m.registry.GetService(host)
		switch {
		case got == nil || best == nil:
			if got != best {
				m.t.Errorf("GetService(%s) = %v, want %v", host, got, best)
			}
		case got.Attributes.ObjectName != best.Attributes.ObjectName || got.Attributes.Namespace != best.Attributes.Namespace:
			m.t.Errorf("GetService(%s) = %s, want %s", host, got.ResourceName(), best.ResourceName())
		case !slices.Contains(all, got):
			m.t.Errorf("GetService(%s) is none of Services", host)
		}
	}
}

func older(s, t *registry.Service) bool {
	if c := s.CreationTime.Compare(t.CreationTime); c != 0 {
		return c < 0
	}
	if c := strings.Compare(s.Attributes.Namespace, t.Attributes.Namespace); c != 0 {
		return c < 0
	}
	return s.Attributes.ObjectName < t.Attributes.ObjectName
}

// checkEndpoints compares the registry's own answer and the index that its calls
// lead to.
func (m *modelSystem) checkEndpoints(after *outcome) {
	m.t.Helper()
	shown := map[string][]string{}
	for _, s := range m.registry.Services() {
		list := []string{}
		instances := m.registry.InstancesByPort(s, 0)
		for _, i := range instances {
			list = append(list, describeEndpoint(i.Endpoint))
		}
		slices.Sort(list)
		shown[s.Key()] = list
	}
	indexed := map[string][]string{}
	for key := range after.endpoints {
		indexed[key] = []string{}
	}
	for service := range m.recorder.Index().All() {
		key := service.Namespace() + "/" + string(service.Hostname())
		if _, exists := after.endpoints[key]; !exists {
			m.t.Errorf("the index still has %s", key)
		}
		for e := range service.All() {
			indexed[key] = append(indexed[key], describeEndpoint(e))
		}
		slices.Sort(indexed[key])
	}
	m.equal("InstancesByPort", after.endpoints, shown)
	m.equal("endpoint index", after.endpoints, indexed)
}

func (m *modelSystem) checkProxies(after *outcome) {
	m.t.Helper()
	for _, ip := range modelIPs {
		for _, namespace := range append([]string{""}, modelNamespaces...) {
			proxy := &registry.Proxy{IPAddresses: []string{ip}, Namespace: namespace}
			var got []string
			for _, i := range m.registry.GetProxyServiceInstances(proxy) {
				got = append(got, describeInstance(i.Service.ResourceName(), i.Endpoint))
			}
			slices.Sort(got)
			m.equal(fmt.Sprintf("instances of a proxy at %s in %q", ip, namespace), after.instances(ip, namespace), got)
			want, labels := after.labels(ip, namespace), m.registry.GetProxyWorkloadLabels(proxy)
			if !want.Equal(labels) || (want == nil) != (labels == nil) {
				m.t.Errorf("labels of a proxy at %s in %q: %v, want %v", ip, namespace, labels, want)
			}
		}
	}
}
