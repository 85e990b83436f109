// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"maps"
	"slices"
	"strings"
)

func (r *destinationRule) labelKeys() []string {
	out := slices.Collect(maps.Keys(r.selector))
	for _, p := range r.policies() {
		out = append(out, failoverKeys(p.GetLoadBalancer().GetLocalityLbSetting())...)
		out = append(out, failoverKeys(p.GetLoadBalancer().GetZoneAwareLbSetting())...)
	}
	return out
}

func (g *gateway) labelKeys() []string { return slices.Collect(maps.Keys(g.router().labels)) }

func (s *sidecar) labelKeys() []string { return slices.Collect(maps.Keys(s.selector)) }

func (*peerAuthentication) labelKeys() []string { return nil }

func (v *virtualService) labelKeys() []string {
	var out []string
	for _, rule := range v.spec.GetHttp() {
		for _, m := range rule.GetMatch() {
			out = slices.AppendSeq(out, maps.Keys(m.GetSourceLabels()))
		}
	}
	for _, r := range v.l4Routes() {
		for _, m := range r.matches {
			out = slices.AppendSeq(out, maps.Keys(m.GetSourceLabels()))
		}
	}
	return out
}

// failoverKeys returns the keys of failover priorities that are compared with the proxy's own
// labels. Entries of the form "key=value" are skipped, because they are compared with the value.
func failoverKeys(setting interface{ GetFailoverPriority() []string }) []string {
	var out []string
	for _, entry := range setting.GetFailoverPriority() {
		if !strings.Contains(entry, "=") {
			out = append(out, entry)
		}
	}
	return out
}
