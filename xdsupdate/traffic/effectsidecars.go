// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"cmp"

	"github.com/pilotkit/pilotkit/xdsupdate/ads"
)

// connectedSidecar stands for the connected sidecars of one view. A policy treats all of them
// alike.
type connectedSidecar struct {
	*proxy
	id string // of the first sidecar
	n  int
}

// sidecarsAmong returns the sidecars among connected proxies, grouped by the view that the named
// provider sees, in the order of the first sidecar in each view.
func (x *provided) sidecarsAmong(connected []ads.ProxyStatus, provider string) (out []*connectedSidecar) {
	byProxy := make(map[*proxy]*connectedSidecar)
	for _, status := range connected {
		p := x.proxy(status.View.SeenBy(provider))
		if p.role != sidecarProxy {
			continue
		}
		if byProxy[p] == nil {
			byProxy[p] = &connectedSidecar{proxy: p, id: status.ID}
			out = append(out, byProxy[p])
		}
		byProxy[p].n++
	}
	return out
}

// unenforced adds a finding for a policy for the inbound side of connected sidecars, because the
// inbound side is not configured.
func (f *findings) unenforced(o object, sidecars []*connectedSidecar) {
	selects := f.inboundPolicy(o)
	if selects == nil {
		return
	}
	first, n := "", 0
	for _, s := range sidecars {
		if selects(s.proxy) {
			first, n = cmp.Or(first, s.id), n+s.n
		}
	}
	if n > 0 {
		f.add("", "the inbound side of sidecars is not configured: connected sidecars do not enforce it: %s", andMore(first, n))
	}
}

// inboundPolicy returns a predicate for the sidecars whose inbound side an object should protect.
// It is nil if the object is not such a policy.
func (st *state) inboundPolicy(o object) func(*proxy) bool {
	within := func(namespace string, t *policyTarget) func(*proxy) bool {
		if len(t.targets) > 0 {
			return nil
		}
		return func(p *proxy) bool {
			return (namespace == p.namespace || namespace == st.settings.rootNamespace()) && t.selector.SubsetOf(p.labels)
		}
	}
	switch o := o.(type) {
	case *authorizationPolicy:
		return within(o.namespace, &o.policyTarget)
	case *requestAuthentication:
		return within(o.namespace, &o.policyTarget)
	case *peerAuthentication:
		if o.spec.GetMtls().GetMode() == strict {
			selected := within(o.namespace, &policyTarget{selector: o.selector})
			return func(p *proxy) bool { return selected(p) && st.peerMode(p.namespace, p.labels, 0).mode == strict }
		}
	}
	return nil
}
