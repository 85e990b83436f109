// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/pilotkit/pilotkit/registry"
)

// compareProxies compares what proxies are.
func (c *comparison) compareProxies(recorded record) {
	specs := c.sys.scenario.Proxies
	for i, r := range recorded.list("proxies") {
		if i < len(specs) {
			c.compareTargets(specs[i], r)
			c.compareLabels(specs[i], r)
		}
	}
}

func (c *comparison) compareTargets(spec proxySpec, recorded record) {
	proxy := c.sys.viewProxy(spec)
	got, want := c.targetsAreRight(proxy), set{}
	for _, r := range recorded.list("targets") {
		if r["targetPort"] != nil || spec.Pod == "" || c.podOf(proxy) != nil { // row K46
			want[r.text()] = true
		}
	}
	if !maps.Equal(got, want) && !c.freeTargets(proxy, spec, got, want) {
		c.report("targets of proxy %s %v:\n got      %s\n recorded %s", spec.Pod, proxy.IPAddresses,
			strings.Join(got.sorted(), "\n          "), strings.Join(want.sorted(), "\n          "))
	}
}

// targetsAreRight compares the targets of a proxy with the expected ones, and returns them.
func (c *comparison) targetsAreRight(proxy *registry.Proxy) (got set) {
	got = set{}
	for _, instance := range c.sys.registry.GetProxyServiceInstances(proxy) {
		got[viewTarget(instance).text()] = true
	}
	right := c.rightTargets(proxy)
	for text := range got {
		if strings.Contains(text, ".svc.") && !right[text] {
			c.report("proxy %s %v has target %s, which is not right: %v", proxy.ID, proxy.IPAddresses, text, right.sorted())
		}
	}
	for text := range right {
		if !got[text] {
			c.report("proxy %s %v lacks target %s", proxy.ID, proxy.IPAddresses, text)
		}
	}
	return got
}

// freeTargets reports whether rows explain all differences of the targets of a
// proxy.
func (c *comparison) freeTargets(proxy *registry.Proxy, spec proxySpec, got, want set) bool {
	for _, text := range append(got.sorted(), want.sorted()...) {
		if got[text] && want[text] {
			continue
		}
		switch {
		case !strings.Contains(text, ".svc."):
			// Of ServiceEntries: they follow pods and clusters (rows K10, K16, K26, K27, 17).
			if !c.followsWorkloads(proxy) {
				return false
			}
		case c.entryAt(proxy): // rows K21, K49
		case c.podOf(proxy) == nil && len(spec.PodPorts) > 0 && got[text]: // row K46
		case c.sys.scenario.Options.Features.ProxyFindPodByIP && c.sharedAddress(proxy): // row K50
		case len(proxy.IPAddresses) > 1: // row K49
		case c.taintedAt(proxy, text): // found by slices, which the recording may have in an earlier state
		case strings.Contains(spec.Pod, "."): // row K48
		default:
			return false
		}
	}
	return true
}

func (c *comparison) followsWorkloads(proxy *registry.Proxy) bool {
	return slices.ContainsFunc(proxy.IPAddresses, func(a string) bool { return c.past.podAddresses[a] || c.past.entryAddresses[a] })
}

func (c *comparison) entryAt(proxy *registry.Proxy) bool {
	return slices.ContainsFunc(proxy.IPAddresses, func(a string) bool { return c.past.entryAddresses[a] })
}

func (c *comparison) sharedAddress(proxy *registry.Proxy) bool {
	n := 0
	for _, w := range c.worldsOf(proxy) {
		for _, p := range w.pods {
			if slices.ContainsFunc(podAddresses(p), func(a string) bool { return slices.Contains(proxy.IPAddresses, a) }) {
				n++
			}
		}
	}
	return n > 1
}

func (c *comparison) taintedAt(proxy *registry.Proxy, text string) bool {
	for k := range c.past.endpoints {
		if !strings.Contains(text, `"`+k.hostname+`"`) {
			continue
		}
		for key := range c.past.endpoints[k] {
			a, _, _ := strings.Cut(key, "/")
			if slices.Contains(proxy.IPAddresses, a) && (c.past.tainted[k][key] || c.past.accounts[k.namespace+"/"+k.hostname]) {
				return true
			}
		}
		for key, e := range c.right.endpoints[k] {
			if a, _, _ := strings.Cut(key, "/"); slices.Contains(proxy.IPAddresses, a) && e.claims > 1 {
				return true
			}
		}
	}
	return false
}

// compareLabels compares the labels of a proxy. The node is that of the pod (row
// K52).
func (c *comparison) compareLabels(spec proxySpec, recorded record) {
	proxy := c.sys.viewProxy(spec)
	got := c.sys.registry.GetProxyWorkloadLabels(proxy)
	wanted, _ := recorded["workloadLabelsOneOf"].([]any)
	if len(wanted) == 0 {
		wanted = []any{recorded["workloadLabels"]}
	}
	text := func(v any) string {
		m, ok := plain(v).(map[string]any)
		if !ok {
			return "none"
		}
		delete(m, "kubernetes.io/hostname")
		if c.past.freeNetwork {
			delete(m, "topology.istio.io/network")
		}
		return record(m).text()
	}
	var all []string
	for _, v := range wanted {
		all = append(all, text(v))
	}
	have := "none"
	if got != nil {
		have = text(got)
	}
	if slices.Contains(all, have) || have == "none" && slices.Contains(all, "{}") {
		return
	}
	if strings.Contains(spec.Pod, ".") && slices.Contains(all, "none") {
		return // row K48
	}
	if c.podOf(proxy) == nil && c.followsWorkloads(proxy) && c.sys.entries != nil {
		return // of ServiceEntries (rows 6, 17, K26)
	}
	if c.sys.scenario.Options.Features.ProxyFindPodByIP && c.sharedAddress(proxy) {
		return // row K50
	}
	c.report("labels of proxy %s: got %s, recorded %v", spec.Pod, have, all)
}

// worldsOf returns the clusters that a proxy may be in.
func (c *comparison) worldsOf(proxy *registry.Proxy) []*world {
	var out []*world
	for _, cl := range c.sys.clusters {
		if w := c.worlds[string(cl.id)]; w != nil && (proxy.ClusterID == "" || proxy.ClusterID == cl.id) {
			out = append(out, w)
		}
	}
	return out
}

// podOf returns the pod that a proxy names, or nil.
func (c *comparison) podOf(proxy *registry.Proxy) *corev1.Pod {
	for _, w := range c.worldsOf(proxy) {
		if p := w.proxyPod(proxy); p != nil {
			return p
		}
	}
	return nil
}

func (w *world) proxyPod(proxy *registry.Proxy) *corev1.Pod {
	if i := strings.LastIndex(proxy.ID, "."); i > 0 {
		return w.pods[proxy.ID[i+1:]+"/"+proxy.ID[:i]]
	}
	return nil
}

// rightTargets returns the targets that a proxy should have of Kubernetes services.
func (c *comparison) rightTargets(proxy *registry.Proxy) set {
	out := set{}
	for _, w := range c.worldsOf(proxy) {
		for text := range c.clusterTargets(w, proxy) {
			out[text] = true
		}
	}
	return out
}

func (c *comparison) clusterTargets(w *world, proxy *registry.Proxy) set {
	if wi := w.proxyWorkload(proxy); wi != nil {
		out := set{}
		for _, s := range w.services {
			if s.Namespace == wi.Namespace && !isHiddenOrAny(s) && resolution(s) == "ClientSide" && selects(s, wi.Endpoint.Attributes().Labels) {
				for _, p := range s.Spec.Ports {
					if n, ok := foreignPort(p, wi); ok {
						out[c.target(w, s, p, n)] = true
					}
				}
			}
		}
		return out
	}
	pod := w.proxyPod(proxy)
	if pod == nil && c.sys.scenario.Options.Features.ProxyFindPodByIP {
		pod = w.podAt(proxy)
	}
	if pod == nil {
		if len(proxy.Labels) == 0 {
			return nil
		}
		return c.selectedTargets(w, proxy.Namespace, proxy.Labels, func(p corev1.ServicePort) (uint32, bool) {
			for _, port := range proxy.WorkloadPorts {
				if port.Name == p.TargetPort.StrVal && port.Protocol == transport(p.Protocol) {
					return port.Number, true
				}
			}
			return 0, false
		})
	}
	out := c.selectedTargets(w, pod.Namespace, pod.Labels, func(p corev1.ServicePort) (uint32, bool) { return containerPort(pod, p) })
	if out == nil {
		out = c.targetsAt(w, proxy, cmp.Or(proxy.Namespace, pod.Namespace))
	}
	return out
}

func isHiddenOrAny(*corev1.Service) bool { return false }

func selects(s *corev1.Service, own map[string]string) bool {
	return len(s.Spec.Selector) > 0 && labels.SelectorFromSet(s.Spec.Selector).Matches(labels.Set(own))
}

func (w *world) proxyWorkload(proxy *registry.Proxy) *registry.WorkloadInstance {
	var best *registry.WorkloadInstance
	for _, wi := range w.foreign {
		at := slices.ContainsFunc(wi.Endpoint.Addresses, func(a string) bool { return slices.Contains(proxy.IPAddresses, a) })
		if !at || proxy.Namespace != "" && wi.Namespace != proxy.Namespace || len(wi.Endpoint.Attributes().Labels) == 0 {
			continue
		}
		named := func(wi *registry.WorkloadInstance) bool { return wi.Name+"."+wi.Namespace == proxy.ID }
		if best == nil || named(wi) && !named(best) || named(wi) == named(best) && registry.CompareWorkloads(wi, best) < 0 {
			best = wi
		}
	}
	return best
}

func (w *world) podAt(proxy *registry.Proxy) *corev1.Pod {
	var best *corev1.Pod
	for _, p := range w.pods {
		if !isUsable(p) || !slices.ContainsFunc(podAddresses(p), func(a string) bool { return slices.Contains(proxy.IPAddresses, a) }) {
			continue
		}
		own := func(p *corev1.Pod) bool { return p.Namespace == proxy.Namespace }
		if best == nil || own(p) && !own(best) || own(p) == own(best) && p.Namespace+"/"+p.Name < best.Namespace+"/"+best.Name {
			best = p
		}
	}
	return best
}

// transport returns the name of a protocol as the API server would write it.
func transport(p corev1.Protocol) string { return string(cmp.Or(p, corev1.ProtocolTCP)) }

func containerPort(pod *corev1.Pod, p corev1.ServicePort) (uint32, bool) {
	find := func(containers []corev1.Container, sidecars bool) (uint32, bool) {
		for _, k := range containers {
			restarted := k.RestartPolicy != nil && *k.RestartPolicy == corev1.ContainerRestartPolicyAlways
			for _, port := range k.Ports {
				if port.Name == p.TargetPort.StrVal && transport(port.Protocol) == transport(p.Protocol) && (!sidecars || restarted) {
					return uint32(port.ContainerPort), true
				}
			}
		}
		return 0, false
	}
	if n, ok := find(pod.Spec.Containers, false); ok {
		return n, true
	}
	return find(pod.Spec.InitContainers, true)
}

// selectedTargets returns the targets of the services that select labels; nil if
// none does.
func (c *comparison) selectedTargets(w *world, namespace string, own map[string]string, named func(corev1.ServicePort) (uint32, bool)) set {
	var out set
	for _, s := range w.services {
		if s.Namespace != namespace || !selects(s, own) {
			continue
		}
		if out == nil {
			out = set{}
		}
		seen := set{}
		for _, p := range s.Spec.Ports {
			n, ok := uint32(p.TargetPort.IntVal), true
			if p.TargetPort.Type == intstr.String {
				n, ok = named(p)
			}
			id := string(number(int64(n))) + protocol(p)
			if ok && !seen[id] {
				seen[id] = true
				out[c.target(w, s, p, n)] = true
			}
		}
	}
	return out
}

func (c *comparison) targetsAt(w *world, proxy *registry.Proxy, namespace string) set {
	out := set{}
	for _, s := range w.services {
		if s.Namespace != namespace {
			continue
		}
		for _, e := range w.endpoints(s) {
			if e.slice == "" || !slices.ContainsFunc(e.record.strings("addresses"), func(a string) bool { return slices.Contains(proxy.IPAddresses, a) }) {
				continue
			}
			for _, p := range s.Spec.Ports {
				if p.Name == e.record.str("servicePortName") {
					n := plain(e.record["endpointPort"])
					out[c.targetOf(w, s, p, n)] = true
					break
				}
			}
		}
	}
	return out
}

func (c *comparison) target(w *world, s *corev1.Service, p corev1.ServicePort, target uint32) string {
	return c.targetOf(w, s, p, number(int64(target)))
}

// targetOf returns a target as recordings have them. Its service is the merged one.
func (c *comparison) targetOf(w *world, s *corev1.Service, p corev1.ServicePort, target any) string {
	host := w.hostname(s.Namespace, s.Name)
	return record(plain(map[string]any{
		"hostname": host, "namespace": s.Namespace, "defaultAddress": vips(s)[0], "portName": p.Name,
		"port": p.Port, "protocol": protocol(p), "targetPort": target,
	}).(map[string]any)).text()
}
