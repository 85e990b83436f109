// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"maps"
	"strings"
)

// compareIndex compares the endpoint index.
func (c *comparison) compareIndex(recorded record) {
	got, want := c.sys.viewIndex(), recordedIndex(recorded)
	keys := map[indexKey]bool{}
	for k := range got {
		keys[k] = true
	}
	for k := range want {
		keys[k] = true
	}
	for k := range keys {
		if strings.HasPrefix(k.shard, "Kubernetes/") {
			c.compareShard(k, want[k])
		} else {
			c.compareEntries(k, got[k], want[k])
		}
	}
}

// compareShard compares the endpoints of a service in the shard of a Kubernetes registry. Endpoints
// that equal the expectation were compared already.
func (c *comparison) compareShard(k indexKey, recorded []record) {
	right, isService := c.right.endpoints[k]
	if !isService || c.hidden(k) {
		return // rows K17, K18
	}
	byKey := map[string][]record{}
	for _, r := range recorded {
		byKey[endpointKey(r)] = append(byKey[endpointKey(r)], c.entryRow(r))
	}
	wanted := map[string][]modelEndpoint{}
	for _, e := range right {
		wanted[endpointKey(e.record)] = append(wanted[endpointKey(e.record)], e)
	}
	for _, key := range hostsOf2(byKey, wanted) {
		want := set{}
		for _, e := range wanted[key] {
			want[c.entryRow(e.record).text()] = true
		}
		if maps.Equal(textsOf(byKey[key]), want) {
			c.past.inStep(k, key)
			continue
		}
		if c.severalAddresses(right, byKey[key], wanted[key]) || c.repeatedPorts(k, wanted[key]) {
			continue
		}
		if why := c.past.explains(k, key, byKey[key], wanted[key]); why != "" {
			c.report("endpoint %s of %s (%s):\n got      %s\n recorded %s", key, k, why,
				strings.Join(want.sorted(), "\n          "), strings.Join(textsOf(byKey[key]).sorted(), "\n          "))
		}
	}
}

func hostsOf2[V, W any](a map[string]V, b map[string]W) []string {
	s := set{}
	for k := range a {
		s[k] = true
	}
	for k := range b {
		s[k] = true
	}
	return s.sorted()
}

func (c *comparison) hidden(k indexKey) bool {
	for _, w := range c.worlds {
		for _, s := range w.services {
			if w.shard() == k.shard && w.hostname(s.Namespace, s.Name) == k.hostname {
				return isHidden(s)
			}
		}
	}
	return false
}

// compareEntries compares the endpoints of a ServiceEntry.
func (c *comparison) compareEntries(k indexKey, got, recorded []record) {
	g, w := textsOf(c.entryRows(got)), textsOf(c.entryRows(recorded))
	if maps.Equal(g, w) || c.past.staleEntries(k, c, got, recorded) {
		return
	}
	c.report("endpoints of %s:\n got      %s\n recorded %s", k, strings.Join(g.sorted(), "\n          "), strings.Join(w.sorted(), "\n          "))
}

// compareGateways compares the gateways of the aggregate.
func (c *comparison) compareGateways(recorded record) {
	got, want := textsOf(viewGateways(c.sys)), textsOf(recorded.list("networkGateways"))
	for g := range want {
		if !got[g] && !c.past.gateway(g) {
			c.report("gateway %s is recorded", g)
		}
	}
	for g := range got {
		if !want[g] && !c.nodePortGateway(g) {
			c.report("gateway %s is not recorded", g)
		}
	}
	if !maps.Equal(got, c.gotGatewaysBefore) && c.gatewayCalls == 0 && len(got)+len(c.gotGatewaysBefore) > 0 {
		c.report("gateway handlers were not called")
	}
}
