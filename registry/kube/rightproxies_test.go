// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
)

// What proxies should get, computed from the objects that exist before and after a
// document.

// proxyUpdatesAreRight compares the pushed proxies with the pods that were added, or whose address,
// labels or relevant annotations changed.
func (c *comparison) proxyUpdatesAreRight(st *step, before map[string]*world, calls []call) {
	if st == nil || st.Lifecycle != nil || st.Together {
		return // registries that restart, and batches with an unknown intermediate state
	}
	want, got := set{}, set{}
	for cluster, w := range c.worlds {
		for key, p := range w.pods {
			var former *corev1.Pod
			if was := before[cluster]; was != nil {
				former = was.pods[key]
			}
			if isUsable(p) && proxyChanged(former, p) {
				want[cluster+" "+p.Status.PodIP] = true
			}
		}
	}
	for _, k := range calls {
		if k.name == callProxyUpdate {
			got[string(k.cluster)+" "+k.ip] = true
		}
	}
	if c.sys.entries == nil && !maps.Equal(got, want) { // they also push proxies of pods that entries select
		c.report("ProxyUpdate: got %v, want %v", got.sorted(), want.sorted())
	}
	for text := range want {
		if !got[text] {
			c.report("ProxyUpdate %s is missing", text)
		}
	}
}

// proxyChanged reports whether a pod that is usable has to be pushed; former is nil if
// there was none.
func proxyChanged(former, p *corev1.Pod) bool {
	const redirection = "ambient.istio.io/redirection"
	return former == nil || !isUsable(former) || former.Status.PodIP != p.Status.PodIP ||
		!maps.Equal(former.Labels, p.Labels) || former.Annotations[redirection] != p.Annotations[redirection]
}

// proxiesAreRight compares the instances of each proxy of the scenario with the expected ones.
func (c *comparison) proxiesAreRight() {
	for _, spec := range c.sys.scenario.Proxies {
		proxy := c.sys.viewProxy(spec)
		c.targetsAreRight(proxy)
		if proxy.ClusterID == "" {
			continue // of several clusters that have the pod, any may answer
		}
		w := c.right.workloads[string(proxy.ClusterID)][spec.Namespace+"/"+spec.Pod]
		if w == nil {
			continue
		}
		endpoint, _ := w["endpoint"].(map[string]any)
		want, _ := plain(endpoint["labels"]).(map[string]any)
		got, _ := plain(c.sys.registry.GetProxyWorkloadLabels(proxy)).(map[string]any)
		delete(want, "kubernetes.io/hostname") // that of the proxy, where the pod has none
		delete(got, "kubernetes.io/hostname")
		if record(got).text() != record(want).text() {
			c.report("labels of proxy %s: got %s, want %s", proxy.ID, record(got).text(), record(want).text())
		}
	}
}
