// SPDX-License-Identifier: Apache-2.0

package serviceentry

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/pilotkit/pilotkit/registry"
)

// A pod of another registry may have connected before it became an instance of a service, so its
// proxy does not know the services. As in Istio 1.30, a ProxyUpdate follows every change of the
// instances at an address of a pod.

// proxyAddress is where a ProxyUpdate goes.
type proxyAddress struct {
	cluster registry.ClusterID
	ip      netip.Addr
}

func (p proxyAddress) compare(q proxyAddress) int {
	return cmp.Or(cmp.Compare(p.cluster, q.cluster), p.ip.Compare(q.ip))
}

// clusterOf returns the cluster of the proxy of a workload. A pod may belong to a different cluster
// than the registry. In that case, Istio 1.30 incorrectly requests a push to the proxy with that
// address in the registry's own cluster.
func (b *batch) clusterOf(w *workload) registry.ClusterID {
	if w.foreign() && w.instance.Cluster != "" {
		return w.instance.Cluster
	}
	return b.options.ClusterID
}

// setPod keeps the table of the addresses of pods.
func (b *batch) setPod(w *workload, present bool) {
	if !w.isPod() {
		return
	}
	for _, a := range w.addresses() {
		ip, err := netip.ParseAddr(a)
		if err != nil {
			continue
		}
		if ip = ip.Unmap(); present {
			b.pods[ip] = append(b.pods[ip], w)
			continue
		}
		list := b.pods[ip]
		if i := slices.Index(list, w); i >= 0 {
			list = slices.Delete(list, i, i+1)
		}
		if b.pods[ip] = list; len(list) == 0 {
			delete(b.pods, ip)
		}
	}
}

// noteFormer notes the addresses that a pod lost although it is still the same
// pod, because it has another one of before: its proxy may be known by those.
func (b *batch) noteFormer(prev, curr *workload) {
	if curr == nil || !curr.isPod() {
		return
	}
	kept := func(a string) bool { return slices.Contains(curr.addresses(), a) }
	if !slices.ContainsFunc(prev.addresses(), kept) {
		return
	}
	for _, a := range prev.addresses() {
		if ip, err := netip.ParseAddr(a); err == nil && !kept(a) {
			if b.former == nil {
				b.former = map[netip.Addr][]registry.ClusterID{}
			}
			b.former[ip.Unmap()] = append(b.former[ip.Unmap()], b.clusterOf(prev))
		}
	}
}

// ofPod reports whether an address belongs to a pod, or did.
func (b *batch) ofPod(ip netip.Addr) bool {
	return len(b.former[ip])+len(b.pods[ip]) > 0
}

// compareProxies adds the pods to proxies that are something else than before, of
// those at addresses that the batch touched.
func (b *batch) compareProxies(before, after *state) {
	if len(b.pods) == 0 {
		return
	}
	compared := map[netip.Addr]struct{}{}
	compare := func(address string) {
		ip, err := netip.ParseAddr(address)
		if err != nil {
			return
		}
		ip = ip.Unmap()
		if _, done := compared[ip]; !done && b.ofPod(ip) {
			compared[ip] = struct{}{}
			b.compareProxy(ip, before, after)
		}
	}
	for address := range b.located {
		compare(address)
	}
	for _, e := range b.entries {
		for _, bi := range e.bindings {
			for m := range bi.contributions {
				for _, a := range m.addresses() {
					compare(a)
				}
			}
		}
	}
}

func (b *batch) compareProxy(ip netip.Addr, before, after *state) {
	var room [2][8]registry.ServiceInstance
	address := ip.String()
	if slices.EqualFunc(before.instancesAt(address, "", room[0][:0]), after.instancesAt(address, "", room[1][:0]), sameInstance) {
		return
	}
	for _, cluster := range b.former[ip] {
		b.pushAddress(proxyAddress{cluster, ip})
	}
	for _, w := range b.pods[ip] {
		b.pushProxy(w)
	}
}

// sameInstance leaves out when the service was created: that does not make the
// proxy something else.
func sameInstance(i, j registry.ServiceInstance) bool {
	return (i.ServicePort == j.ServicePort || *i.ServicePort == *j.ServicePort) &&
		i.Service.Equal(j.Service) && i.Endpoint.Equal(j.Endpoint)
}
