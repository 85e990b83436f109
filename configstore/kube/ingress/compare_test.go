// SPDX-License-Identifier: Apache-2.0

package ingress_test

import (
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"
	networkingv1 "k8s.io/api/networking/v1"

	gocmp "github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/kube/ingress"
)

// observed contains the relevant parts of an observation: VirtualServices by host, because their
// names are incidental, and the sorted hosts of servers.
type observed struct {
	gateways map[string]*networking.Gateway
	hosts    map[string]observedHost
	// statuses contains the sorted addresses of each Ingress that has addresses.
	statuses map[string][]string
}

type observedHost struct {
	namespace string
	spec      *networking.VirtualService
}

func observe(s *ingress.Snapshot) (*observed, []string) {
	var wrong []string
	out := &observed{map[string]*networking.Gateway{}, map[string]observedHost{}, map[string][]string{}}
	for _, c := range s.Configs(istio.Gateway) {
		g, _ := proto.Clone(c.Spec).(*networking.Gateway)
		for _, server := range g.GetServers() {
			slices.Sort(server.Hosts)
		}
		out.gateways[c.Namespace+"/"+c.Name] = g
	}
	for _, c := range s.Configs(istio.VirtualService) {
		v, _ := c.Spec.(*networking.VirtualService)
		host := v.GetHosts()[0]
		if _, twice := out.hosts[host]; twice || len(v.GetHosts()) != 1 {
			wrong = append(wrong, "several VirtualServices have the host "+host)
		}
		if c.Annotations["internal.istio.io/route-semantics"] != "ingress" {
			wrong = append(wrong, c.Key().String()+" has not the semantics of Ingress")
		}
		out.hosts[host] = observedHost{c.Namespace, v}
	}
	for key := range s.Ours() {
		status, _ := s.Status(key)
		if a := addressesOf(status.Ingress); len(a) > 0 {
			out.statuses[key.String()] = a
		}
	}
	return out, wrong
}

func addressesOf(all []networkingv1.IngressLoadBalancerIngress) []string {
	var out []string
	for _, a := range all {
		out = append(out, a.IP+a.Hostname)
	}
	slices.Sort(out)
	return out
}

// compare returns the differences between an observation and the model. clashed contains the names
// that two hosts had at any time of a scenario in the recording: one of the two is lost there, any
// of them (I6).
func (m model) compare(o *observed, clashed map[string]bool) (wrong []string) {
	want := m.gateways()
	if !maps.EqualFunc(want, o.gateways, func(a, b *networking.Gateway) bool { return proto.Equal(a, b) }) {
		d := gocmp.Diff(want, o.gateways, protocmp.Transform())
		wrong = append(wrong, "gateways (-model +observed):\n"+d)
	}
	hosts := m.hosts()
	byName := map[string]int{}
	for _, h := range hosts {
		if name := h.namespace + "/" + h.name; m.recorded {
			if byName[name]++; byName[name] > 1 {
				clashed[name] = true
			}
		}
	}
	for _, host := range slices.Sorted(maps.Keys(hosts)) {
		h := hosts[host]
		got, found := o.hosts[host]
		switch {
		case !found && clashed[h.namespace+"/"+h.name]:
		case !found:
			wrong = append(wrong, "no VirtualService for "+host)
		case got.namespace != h.namespace:
			wrong = append(wrong, fmt.Sprintf("the VirtualService for %s is in %s, not in %s", host, got.namespace, h.namespace))
		default:
			if !proto.Equal(h.spec, got.spec) {
				wrong = append(wrong, "the VirtualService for "+host+" (-model +observed):\n"+gocmp.Diff(h.spec, got.spec, protocmp.Transform()))
			}
		}
	}
	for _, host := range slices.Sorted(maps.Keys(o.hosts)) {
		if hosts[host] == nil {
			wrong = append(wrong, "a VirtualService for "+host)
		}
	}
	return append(wrong, m.compareStatuses(o)...)
}

// compareStatuses compares the statuses of our Ingresses. Other Ingresses may have any status
// (I13).
func (m model) compareStatuses(o *observed) (wrong []string) {
	may := m.addresses()
	for _, i := range m.sorted() {
		key := i.Namespace + "/" + i.Name
		if !slices.ContainsFunc(may, func(a []string) bool { return slices.Equal(a, o.statuses[key]) }) {
			wrong = append(wrong, fmt.Sprintf("the status of %s has %v, not one of %v", key, o.statuses[key], may))
		}
	}
	return wrong
}
