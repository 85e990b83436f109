// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// comparison collects the differences of one step.
type comparison struct {
	want *expected
	got  observation
	// wantNames and gotNames are kept for the whole scenario.
	wantNames, gotNames *naming
	differences         []string
}

// compare returns the differences of a step, each with its section.
func compare(want *expected, got observation, wantNames, gotNames *naming) []string {
	c := &comparison{want: want, got: got, wantNames: wantNames, gotNames: gotNames}
	for _, p := range want.problems {
		c.report("the recording itself", "%s", p)
	}
	c.store()
	if want.storeOnly {
		return c.differences
	}
	c.services()
	c.lookups()
	c.aggregate()
	c.workloads()
	c.serviceHandlers()
	c.serviceUpdates()
	c.order()
	if want.collisions {
		return c.differences
	}
	c.index()
	c.proxies()
	c.pushes()
	c.proxyUpdates()
	c.endpointUpdates()
	c.svcUpdates()
	return c.differences
}

func (c *comparison) report(section, format string, args ...any) {
	c.differences = append(c.differences, section+": "+fmt.Sprintf(format, args...))
}

// equal reports a difference unless got equals want or one of the alternatives of
// the section.
func (c *comparison) equal(section string, want, got any, alternatives ...any) {
	diff := cmp.Diff(want, got, cmpopts.EquateEmpty())
	if diff == "" {
		return
	}
	for _, a := range alternatives {
		if cmp.Equal(a, got, cmpopts.EquateEmpty()) {
			return
		}
	}
	c.report(section, "(-want +got)\n%s", diff)
}

func (c *comparison) store() {
	if len(c.want.Results) == 1 && c.want.Results[0].Op == opDeleteRegistryIfCurrent {
		c.answer(c.want.Results[0], c.got.Results[0])
		return
	}
	want := named(c.wantNames, c.want.Results, c.want.EventHandlerCalls)
	got := named(c.gotNames, c.got.Results, c.got.EventHandlerCalls)
	c.equal("results", want.Results, got.Results)
	c.equal("eventHandlerCalls", want.Events, got.Events)
}

// answer compares the boolean result of an aggregate's operation, in any recorded wording.
func (c *comparison) answer(want, got result) {
	yes := slices.Contains([]string{outcomeOK, "true", "deleted", "removed"}, want.Outcome)
	if want.Outcome != "" && yes != (got.Outcome == outcomeOK) {
		c.report("results", "%s: got %s, want %s", got.Op, got.Outcome, want.Outcome)
	}
}

func (c *comparison) services() {
	c.equal("services", normaliseServices(c.want.Services), normaliseServices(c.got.Services),
		variants(c.want, "services", func(services []service) []service {
			return normaliseServices(c.want.rightServices(services))
		})...)
}

// normaliseServices brings services into a common order and spelling.
func normaliseServices(services []service) []service {
	out := slices.Clone(services)
	for i := range out {
		out[i].ExportTo = slices.Sorted(slices.Values(out[i].ExportTo))
		out[i].Visibility = spellVisibility(out[i].Visibility)
	}
	slices.SortStableFunc(out, func(a, b service) int {
		return strings.Compare(a.resource()+"/"+a.Registry, b.resource()+"/"+b.Registry)
	})
	return out
}

// spellVisibility returns one spelling for each visibility.
func spellVisibility(v string) string {
	switch strings.ToLower(v) {
	case "", "*", "public":
		return ""
	case ".", "private", "namespace":
		return "Private"
	case "~", "none":
		return "None"
	default:
		return v
	}
}

// lookups compares getService. A single recorded answer must be given; of several,
// the one of row 5.
func (c *comparison) lookups() {
	for _, hostname := range sortedKeys(c.want.GetService) {
		want := c.want.lookup(hostname)
		got := c.got.GetService[hostname]
		if len(got) != 1 || !slices.Contains(want, got[0]) {
			c.report("getService", "%s: got %v, want one of %v", hostname, got, want)
		}
	}
}

// index compares the content and the keys of the endpoint index.
func (c *comparison) index() {
	want, got := c.indexOf(c.want.EndpointIndex, c.want.normalise), c.indexOf(c.got.EndpointIndex, normaliseReplayed)
	c.equal("endpointIndex", want, got, variants(c.want, "endpointIndex", func(entries []indexEntry) map[string]indexView {
		return c.indexOf(entries, c.want.normalise)
	})...)
}

// indexView is an entry of the index for comparison.
type indexView struct {
	ServiceAccounts []string
	Shards          map[string]map[string]endpoint
}

func (c *comparison) indexOf(entries []indexEntry, normalise func([]endpoint) []endpoint) map[string]indexView {
	out := map[string]indexView{}
	for _, e := range entries {
		if c.want.free[e.key()] {
			continue
		}
		shards := slices.Clone(e.Shards)
		e.Shards = slices.DeleteFunc(shards, func(s shard) bool {
			return len(s.Endpoints) == 0 || c.want.removedShards[s.Shard]
		})
		if len(e.Shards) == 0 && len(c.want.removedShards) > 0 {
			continue
		}
		e = incidentalAccountsOfEmptyKey(e)
		v := indexView{ServiceAccounts: slices.Sorted(slices.Values(e.ServiceAccounts)), Shards: map[string]map[string]endpoint{}}
		for _, s := range e.Shards {
			v.Shards[s.Shard] = byText(normalise(s.Endpoints))
		}
		out[e.key().String()] = v
	}
	return out
}

// byText makes a map of endpoints, so that lists are compared as sets and
// duplicates show.
func byText(endpoints []endpoint) map[string]endpoint {
	out := map[string]endpoint{}
	for _, e := range endpoints {
		name := fmt.Sprintf("%v:%d %s/%s %s", e.Addresses, e.EndpointPort, e.Namespace, e.WorkloadName, e.ServicePortName)
		for n := 1; ; n++ {
			k := fmt.Sprintf("%s #%d", name, n)
			if _, taken := out[k]; !taken {
				out[k] = e
				break
			}
		}
	}
	return sortTwins(out)
}

// sortTwins makes the numbering of endpoints with equal names independent of the
// order of the list.
func sortTwins(m map[string]endpoint) map[string]endpoint {
	names := map[string][]string{}
	for k := range m {
		base, _, _ := strings.Cut(k, " #")
		names[base] = append(names[base], k)
	}
	for _, keys := range names {
		if len(keys) == 1 {
			continue
		}
		slices.Sort(keys)
		twins := make([]endpoint, len(keys))
		for i, k := range keys {
			twins[i] = m[k]
		}
		slices.SortFunc(twins, func(a, b endpoint) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		for i, k := range keys {
			m[k] = twins[i]
		}
	}
	return m
}

func (c *comparison) aggregate() {
	c.equal("registryOrder", c.want.RegistryOrder, c.got.RegistryOrder)
	c.equal("networkGateways", gatewaySet(c.want.NetworkGateways), gatewaySet(c.got.NetworkGateways))
}

func gatewaySet(gateways []gateway) map[gateway]bool {
	out := map[gateway]bool{}
	for _, g := range gateways {
		out[g] = true
	}
	return out
}

// workloads compares the notifications of workload handlers as a multiset.
func (c *comparison) workloads() {
	c.equal("workloadHandlerCalls", workloadCalls(c.want.WorkloadHandlerCalls, c.want.normalise),
		workloadCalls(c.got.WorkloadHandlerCalls, normaliseReplayed),
		variants(c.want, "workloadHandlerCalls", func(calls []workloadHandlerCall) []workloadHandlerCall {
			return workloadCalls(calls, c.want.normalise)
		})...)
}

func workloadCalls(calls []workloadHandlerCall, normalise func([]endpoint) []endpoint) []workloadHandlerCall {
	out := slices.Clone(calls)
	for i := range out {
		out[i].Endpoint = normalise([]endpoint{out[i].Endpoint})[0]
	}
	slices.SortStableFunc(out, func(a, b workloadHandlerCall) int {
		return strings.Compare(workloadOrder(a), workloadOrder(b))
	})
	return out
}

func workloadOrder(w workloadHandlerCall) string {
	return fmt.Sprintf("%04d %s %s/%s %s", w.Doc, w.Handler, w.Namespace, w.Name, w.Kind)
}

// serviceHandlers compares the notifications of service handlers about static
// registries: the recorded ServiceEntry registry never notified. When a registry
// joins or leaves, its services come and go, which was not notified either.
func (c *comparison) serviceHandlers() {
	if c.want.membership {
		return
	}
	c.equal("serviceHandlerCalls", serviceCalls(c.want.ServiceHandlerCalls), serviceCalls(c.got.ServiceHandlerCalls))
}

func serviceCalls(calls []serviceHandlerCall) []serviceHandlerCall {
	out := slices.Clone(calls)
	slices.SortStableFunc(out, func(a, b serviceHandlerCall) int {
		return strings.Compare(fmt.Sprintf("%04d %s %s", a.Doc, a.Handler, a.Hostname), fmt.Sprintf("%04d %s %s", b.Doc, b.Handler, b.Hostname))
	})
	return out
}

// sortedKeys returns the keys of a map in order.
func sortedKeys[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
