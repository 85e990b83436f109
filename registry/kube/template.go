// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"hash/maphash"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/pilotkit/pilotkit/registry"
)

// podTemplate has the fields that the pods of a workload have in common. It is immutable, except
// for the fields that only templates uses.
type podTemplate struct {
	// labels are the labels of the object.
	labels            registry.Labels
	account, workload string
	// hostname and subdomain are those fields of the spec. The hostname is set only if the
	// subdomain is, and is then "" for the name of the pod.
	hostname, subdomain string
	// redirection is the value of annotationRedirection. A change of it pushes to proxies.
	redirection string
	// ports are the named ports of the containers.
	ports []registry.WorkloadPort

	hash  uint64
	users int
	// next is the next template with the same hash.
	next *podTemplate
}

// portMap returns the TCP ports by name, for workload handlers. Of several ports with one name the
// first is used.
func (t *podTemplate) portMap() map[string]uint32 {
	var out map[string]uint32
	for _, port := range t.ports {
		if port.Protocol != string(corev1.ProtocolTCP) {
			continue
		}
		if out == nil {
			out = map[string]uint32{}
		}
		if _, ok := out[port.Name]; !ok {
			out[port.Name] = port.Number
		}
	}
	return out
}

func sameTemplate(a, b *podTemplate) bool {
	return a == b || a.account == b.account && a.workload == b.workload && a.hostname == b.hostname &&
		a.subdomain == b.subdomain && a.redirection == b.redirection &&
		slices.Equal(a.ports, b.ports) && maps.Equal(a.labels, b.labels)
}

// templates keeps one copy of equal templates, and counts its users. A template without users is
// dropped.
type templates struct {
	seed   maphash.Seed
	byHash map[uint64]*podTemplate
}

func newTemplates() templates {
	return templates{maphash.MakeSeed(), map[uint64]*podTemplate{}}
}

// hashOf returns a hash of the fields that distinguish most templates.
func (t *templates) hashOf(p *podTemplate) uint64 {
	sum := maphash.String(t.seed, p.workload)
	for k, v := range p.labels {
		sum += maphash.String(t.seed, k) ^ 3*maphash.String(t.seed, v) // independent of the order
	}
	return sum
}

// acquire returns the shared copy of a template, with one more user.
func (t *templates) acquire(p *podTemplate) *podTemplate {
	hash := t.hashOf(p)
	first := t.byHash[hash]
	for same := first; same != nil; same = same.next {
		if sameTemplate(same, p) {
			same.users++
			return same
		}
	}
	kept := *p
	kept.hash, kept.users, kept.next = hash, 1, first
	t.byHash[hash] = &kept
	return &kept
}

// release releases a template that acquire returned.
func (t *templates) release(p *podTemplate) {
	if p.users--; p.users > 0 {
		return
	}
	link := t.byHash[p.hash]
	if link == p {
		if p.next == nil {
			delete(t.byHash, p.hash)
		} else {
			t.byHash[p.hash] = p.next
		}
		return
	}
	for link.next != p {
		link = link.next
	}
	link.next = p.next
}
