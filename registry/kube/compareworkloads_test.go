// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"maps"
	"net/netip"
	"strings"

	"github.com/pilotkit/pilotkit/registry"
)

func (c *comparison) notify(w workloadCall) {
	if w.workload == nil {
		maps.DeleteFunc(c.notified, func(k string, _ record) bool { return strings.HasPrefix(k, w.registry+" ") })
		return
	}
	k := w.registry + " " + w.workload.Kind.String() + " " + w.workload.Namespace + "/" + w.workload.Name
	if w.event == registry.EventDelete {
		delete(c.notified, k)
		return
	}
	c.notified[k] = viewWorkload(w.workload)
}

func viewWorkload(w *registry.WorkloadInstance) record {
	return plain(map[string]any{"portMap": w.PortMap, "endpoint": viewEndpoint(w.Endpoint)}).(map[string]any)
}

// compareWorkloadHandlers compares the last that handlers were notified of each
// workload.
func (c *comparison) compareWorkloadHandlers(recorded record) {
	want := map[string]record{}
	for _, r := range recorded.list("workloadHandlerCalls") {
		k := r.str("registry") + " " + r.str("kind") + " " + r.str("namespace") + "/" + r.str("name")
		want[k] = plain(map[string]any{"portMap": r["portMap"], "endpoint": r["endpoint"]}).(map[string]any)
		if r.str("event") == "delete" {
			want[k] = nil
		}
	}
	for _, w := range c.workloads {
		c.notify(w)
	}
	for k, w := range want {
		got, has := c.notified[k]
		switch {
		case w == nil && !has, w != nil && has && c.entryRow(w).text() == c.entryRow(got).text():
		case w != nil && got.text() == c.notifiedBefore[k].text() && w.text() == got.text():
		case c.past.workload(k, w):
		default:
			c.report("workload handlers of %s:\n got      %s\n recorded %s", k, got.text(), w.text())
		}
	}
	for _, w := range c.workloads {
		if w.workload == nil {
			continue
		}
		k := w.registry + " " + w.workload.Kind.String() + " " + w.workload.Namespace + "/" + w.workload.Name
		if _, recordedToo := want[k]; !recordedToo && !c.past.workload(k, nil) && c.notified[k].text() != c.notifiedBefore[k].text() {
			c.report("workload handlers of %s: got %s %s, recorded nothing", k, w.event, c.notified[k].text())
		}
	}
	c.compareToldPods()
}

// compareToldPods compares the pods that workload handlers have received with the expected ones.
func (c *comparison) compareToldPods() {
	for cluster, all := range c.right.workloads {
		prefix := "Kubernetes/" + cluster + " Pod "
		for k, want := range all {
			if got := c.notified[prefix+k]; got.text() != want.text() {
				c.report("workload handlers know of %s%s:\n got  %s\n want %s", prefix, k, got.text(), want.text())
			}
		}
		for k := range c.notified {
			if name, ok := strings.CutPrefix(k, prefix); ok && all[name] == nil {
				c.report("workload handlers still know of %s", k)
			}
		}
	}
}

// compareProxyUpdates compares which proxies were to be pushed.
func (c *comparison) compareProxyUpdates(recorded record) {
	want, got := set{}, set{}
	for _, r := range recorded.list("calls") {
		if r.str("call") == callProxyUpdate && r["sometimes"] != true && isIP(r.str("ip")) { // row 3
			want[r.str("cluster")+" "+r.str("ip")] = true
		}
	}
	for _, k := range c.calls {
		if k.name == callProxyUpdate {
			got[string(k.cluster)+" "+k.ip] = true
		}
	}
	for k := range want {
		if !got[k] && !c.past.proxyUpdate(k, c) {
			c.report("ProxyUpdate %s is missing", k)
		}
	}
	for k := range got {
		if !want[k] && !c.past.proxyUpdate(k, c) {
			c.report("ProxyUpdate %s is not recorded", k)
		}
	}
}

func isIP(text string) bool {
	_, err := netip.ParseAddr(text)
	return err == nil
}
