// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"maps"
	"slices"
	"strings"

	"github.com/pilotkit/pilotkit/registry"
)

func (r *DestinationRule) labelKeys() []string {
	out := slices.Collect(maps.Keys(r.Selector))
	for _, p := range r.Policies() {
		out = append(out, FailoverKeys(p.GetLoadBalancer().GetLocalityLbSetting())...)
		out = append(out, FailoverKeys(p.GetLoadBalancer().GetZoneAwareLbSetting())...)
	}
	return out
}

func (g *Gateway) labelKeys() []string { return slices.Collect(maps.Keys(g.Router().Labels)) }

func (s *Sidecar) labelKeys() []string { return slices.Collect(maps.Keys(s.Selector)) }

func (*PeerAuthentication) labelKeys() []string { return nil }

func (v *VirtualService) labelKeys() []string {
	var out []string
	for _, rule := range v.Spec.GetHttp() {
		for _, m := range rule.GetMatch() {
			out = slices.AppendSeq(out, maps.Keys(m.GetSourceLabels()))
		}
	}
	for _, r := range v.L4Routes() {
		for _, m := range r.Matches {
			out = slices.AppendSeq(out, maps.Keys(m.GetSourceLabels()))
		}
	}
	return out
}

// FailoverKeys returns the keys of failover priorities that are compared with the proxy's own
// labels. Entries of the form "key=value" are skipped, because they are compared with the value.
func FailoverKeys(setting interface{ GetFailoverPriority() []string }) []string {
	var out []string
	for _, entry := range setting.GetFailoverPriority() {
		if !strings.Contains(entry, "=") {
			out = append(out, entry)
		}
	}
	return out
}

// JoinLabels returns a text that is equal for equal labels.
func JoinLabels(labels registry.Labels) string {
	if len(labels) == 0 {
		return ""
	}
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		b.WriteString(key)
		b.WriteByte('=')
		b.WriteString(labels[key])
		b.WriteByte(0)
	}
	return b.String()
}
