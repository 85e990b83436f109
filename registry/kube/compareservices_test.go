// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"slices"
	"strings"

	"github.com/pilotkit/pilotkit/registry"
)

// compareServices compares services and lookups.
func (c *comparison) compareServices(recorded record) {
	got := map[string]record{}
	for _, s := range c.sys.registry.Services() {
		r := viewService(s)
		got[serviceKey(r)] = r
	}
	c.compareServiceLists("the aggregate", got, recorded.list("services"))
	for _, cs := range recorded.list("clusterServices") {
		for _, cl := range c.sys.clusters {
			if string(cl.id) != cs.str("cluster") || cl.kube == nil {
				continue
			}
			own := map[string]record{}
			for _, s := range cl.kube.Services() {
				r := viewService(s)
				own[serviceKey(r)] = r
			}
			c.compareServiceLists(string(cl.id), own, cs.list("services"))
		}
	}
	answers, _ := recorded["getService"].(map[string]any)
	for host, want := range answers {
		c.compareLookup(host, want)
	}
}

func serviceKey(r record) string {
	return r.str("registry") + ":" + r.str("namespace") + "/" + r.str("objectName") + "/" + r.str("hostname") + "/" + r.str("defaultAddress")
}

func (c *comparison) compareServiceLists(of string, got map[string]record, recorded []record) {
	want := map[string]record{}
	for _, r := range recorded {
		want[serviceKey(r)] = r
	}
	for _, k := range hostsOf(got, want) {
		g, w := c.serviceRows(got[k]), c.serviceRows(want[k])
		switch {
		case g.text() == w.text(), c.past.unwatched(g, w):
		case g != nil && w != nil && c.past.staleService(g, w):
		default:
			c.report("service of %s:\n got      %s\n recorded %s", of, g.text(), w.text())
		}
	}
}

func (c *comparison) compareLookup(host string, want any) {
	got := ""
	if s := c.sys.registry.GetService(registry.Hostname(host)); s != nil {
		got = serviceKey(viewService(s))
	}
	if text, ok := want.(string); ok && text != got && !c.past.unwatchedHost(host) && !strings.HasPrefix(got, "Kubernetes:") {
		c.report("lookup of %s: got %q, recorded %q", host, got, text)
	}
}

// compareServiceHandlers compares the services that handlers received.
func (c *comparison) compareServiceHandlers(recorded record) {
	want, got := map[string]string{}, map[string]string{}
	for _, r := range recorded.list("serviceHandlerCalls") {
		want[r.str("cluster")+" "+r.str("hostname")] = r.str("event")
	}
	for _, s := range c.services {
		got[string(s.cluster)+" "+string(s.hostname)] = s.event.String()
	}
	for _, k := range hostsOf(got, want) {
		cluster, host, _ := strings.Cut(k, " ")
		switch g, w := got[k], want[k]; {
		case (g == "delete") == (w == "delete") && (g == "") == (w == ""):
		case g == "" && w != "delete" && !c.past.changedInStep[k]: // unchanged
		case g == "" && c.replaced(cluster): // the handler of a new registry starts complete
		case w == "" && c.past.changedByOthers[k]:
		case w == "" && recordedForced(recorded): // row K35: a push to all proxies needs no further push
		case w == "" && g != "" && c.replaced(cluster):
		case c.past.unwatchedHost(host):
		default:
			c.report("service handlers of %s: got %q, recorded %q", k, g, w)
		}
	}
}

func recordedForced(recorded record) bool {
	return slices.ContainsFunc(recorded.list("calls"), func(r record) bool { return r["forced"] == true })
}
