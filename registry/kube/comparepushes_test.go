// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/kube"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// comparePushes compares with what services were pushed whose endpoints changed, if
// they changed in the same way.
func (c *comparison) comparePushes(recorded record) {
	got, want := map[string]xdsupdate.PushType{}, map[string]xdsupdate.PushType{}
	for _, k := range c.calls {
		if k.name == callEDSUpdate {
			name := k.namespace + "/" + string(k.hostname)
			got[name] = max(got[name], k.push)
		}
	}
	uncertain := set{}
	for _, r := range recorded.list("calls") {
		k := r.str("namespace") + "/" + r.str("hostname")
		if r.str("call") == callSvcUpdate && r.str("event") == "delete" {
			uncertain[k] = true // the deletion empties the index, so that an update with no endpoints has no content
		}
		if name := r.str("call"); name == "EDSUpdate" || name == "EDSCacheUpdate" {
			want[k] = max(want[k], pushType(r.str("pushType")))
			if r["sometimes"] == true {
				uncertain[k] = true
			}
		}
	}
	after := recordedIndex(recorded)
	for k := range want {
		if got[k] == want[k] || uncertain[k] || !sameHost(k, c.gotBefore, c.recordedBefore) || !sameHost(k, c.sys.viewIndex(), after) {
			continue
		}
		if sameHost(k, c.gotBefore, c.sys.viewIndex()) || c.removedShard() || c.past.pushes(k) {
			continue // unchanged, or with another history of accounts
		}
		c.report("push of %s: got %s, recorded %s", k, got[k], want[k])
	}
	for _, k := range c.calls {
		if k.name == callEDSUpdate && k.push == xdsupdate.NoPush && len(c.sys.clusters) == 1 && !c.pushedMore(k) {
			c.report("an EDSUpdate of %s/%s changes nothing", k.namespace, k.hostname)
		}
	}
}

// pushedMore: an update that hides behind another one of the same step.
func (c *comparison) pushedMore(k call) bool {
	return slices.ContainsFunc(c.calls, func(l call) bool { return l.name == callSvcUpdate && l.hostname == k.hostname }) ||
		strings.HasPrefix(k.shard.String(), "External/")
}

func (c *comparison) removedShard() bool {
	return slices.ContainsFunc(c.calls, func(k call) bool { return k.name == callRemoveShard })
}

func pushType(s string) xdsupdate.PushType {
	for _, p := range []xdsupdate.PushType{xdsupdate.NoPush, xdsupdate.IncrementalPush, xdsupdate.FullPush} {
		if p.String() == s {
			return p
		}
	}
	return xdsupdate.NoPush
}

// sameHost reports whether all shards of a service are the same in two states.
func sameHost(k string, a, b indexState) bool {
	for _, pair := range [][2]indexState{{a, b}, {b, a}} {
		for i, list := range pair[0] {
			if i.namespace+"/"+i.hostname == k && !maps.Equal(textsOf(list), textsOf(pair[1][i])) {
				return false
			}
		}
	}
	return true
}

// compareConfigUpdates checks the requested pushes.
func (c *comparison) compareConfigUpdates(recorded record) {
	services, headless, forced := set{}, set{}, set{}
	for _, k := range c.calls {
		if k.name != callConfigUpdate {
			continue
		}
		for reason := range k.request.Reason {
			switch {
			case k.request.Forced:
				forced[string(reason)] = true
			case reason == kube.ReasonHeadlessEndpoint:
				for _, key := range k.request.Keys() {
					headless[key.String()] = true
				}
			case reason == xdsupdate.ReasonService:
				for _, key := range k.request.Keys() {
					services[key.Name] = true
				}
			}
		}
	}
	for _, s := range c.services {
		if !services[string(s.hostname)] && !c.replaced(string(s.cluster)) && !c.removedShard() {
			c.report("no ConfigUpdate of %s", s.hostname)
		}
	}
	c.compareHeadless(recorded, headless)
	if !maps.Equal(c.gotGatewaysBefore, textsOf(viewGateways(c.sys))) && len(forced) == 0 {
		c.report("gateways changed without a forced push")
	}
	for _, r := range recorded.list("calls") {
		if r["forced"] != true {
			continue
		}
		reason := r.strings("reasons")[0]
		changed := !maps.Equal(c.gatewaysBefore, textsOf(recorded.list("networkGateways"))) &&
			maps.Equal(c.gotGatewaysBefore, c.gatewaysBefore) && maps.Equal(textsOf(viewGateways(c.sys)), textsOf(recorded.list("networkGateways")))
		if (reason == "cluster" || changed && len(c.sys.clusters) == 1) && !forced[reason] &&
			(recorded["index"] != json.Number("-1") || len(forced) == 0) {
			c.report("no forced ConfigUpdate with reason %s: got %v", reason, forced.sorted())
		}
	}
}

// compareHeadless: a headless service whose endpoints changed is pushed, no other
// (row K53).
func (c *comparison) compareHeadless(recorded record, got set) {
	want := set{}
	after := c.sys.viewIndex()
	for cluster, w := range c.worlds {
		for _, s := range w.services {
			if resolution(s) != "Passthrough" || isHidden(s) {
				continue
			}
			k := indexKey{w.hostname(s.Namespace, s.Name), s.Namespace, "Kubernetes/" + cluster}
			if !maps.Equal(textsOf(c.gotBefore[k]), textsOf(after[k])) {
				want[headlessName(s, k)] = true
			}
		}
	}
	for k := range want {
		if !got[k] && !c.removedShard() {
			c.report("no ConfigUpdate of %s with reason headlessendpoint", k)
		}
	}
	for _, r := range recorded.list("calls") {
		for _, k := range r.strings("configsUpdated") {
			if slices.Contains(r.strings("reasons"), "headlessendpoint") && want[k] && !got[k] {
				c.report("no ConfigUpdate of %s with reason headlessendpoint, which is recorded", k)
			}
		}
	}
}

func headlessName(s *corev1.Service, k indexKey) string {
	kind := "DNSName"
	for _, p := range s.Spec.Ports {
		if !registry.Protocol(protocol(p)).IsHTTP() {
			kind = "ServiceEntry"
		}
	}
	return kind + "/" + k.namespace + "/" + k.hostname
}
