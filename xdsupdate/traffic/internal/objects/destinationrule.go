// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/hostname"
)

// DestinationRule is a DestinationRule with its names resolved. It is immutable.
type DestinationRule struct {
	Stored
	Spec *networking.DestinationRule
	Host registry.Hostname
	// Selector selects the client workloads that the rule applies to. Nil selects all.
	Selector   registry.Labels
	Visibility Visibility
	// alike is equal for rules with the same workload selector and exportTo, as they are written: an
	// absent exportTo differs from "*" (Istio 1.30).
	alike string
	// Hashes and passes are set if some load balancer has a consistent hash, or is PASSTHROUGH.
	Hashes, Passes bool
}

func newDestinationRule(c *configstore.Config, spec *networking.DestinationRule, s *Settings) *DestinationRule {
	r := &DestinationRule{
		Stored: newStored(c), Spec: namingServers(c, spec),
		Host:       hostname.Resolve(spec.GetHost(), c.Namespace, s.Domain),
		Selector:   spec.GetWorkloadSelector().GetMatchLabels(),
		Visibility: newVisibility(spec.GetExportTo(), s.Mesh.GetDefaultDestinationRuleExportTo(), c.Namespace),
	}
	exportTo := slices.Clone(spec.GetExportTo())
	if spec.GetWorkloadSelector() != nil {
		r.Visibility, exportTo = Private(c.Namespace), nil
	}
	slices.Sort(exportTo)
	r.alike = fmt.Sprintf("%t %q %s", r.Selective(), slices.Compact(exportTo), JoinLabels(r.Selector))
	for _, p := range r.Policies() {
		r.Hashes = r.Hashes || p.GetLoadBalancer().GetConsistentHash() != nil
		r.Passes = r.Passes || PassesThrough(p.GetLoadBalancer())
	}
	return r
}

// Selective reports whether the rule has a workload selector.
func (r *DestinationRule) Selective() bool { return r.Spec.GetWorkloadSelector() != nil }

// OfPolicies reports whether the rule was generated from BackendTLSPolicies.
func (r *DestinationRule) OfPolicies() bool { return standsForPolicies(r.Config) }

// PolicyAt is a traffic policy, or its settings for a port, with its field.
type PolicyAt struct {
	Field string
	PolicyLevel
}

// PolicyLevel is a traffic policy, or its settings for a port.
type PolicyLevel interface {
	GetLoadBalancer() *networking.LoadBalancerSettings
	GetTls() *networking.ClientTLSSettings
}

// Policies returns the policies of the rule and of its subsets, each followed by its settings for
// ports.
func (r *DestinationRule) Policies() (out []PolicyAt) {
	add := func(field string, p *networking.TrafficPolicy) {
		if p == nil {
			return
		}
		out = append(out, PolicyAt{field, p})
		for i, port := range p.GetPortLevelSettings() {
			out = append(out, PolicyAt{Element(field+".portLevelSettings", i), port})
		}
	}
	add("spec.trafficPolicy", r.Spec.GetTrafficPolicy())
	for i, s := range r.Spec.GetSubsets() {
		add(Element("spec.subsets", i)+".trafficPolicy", s.GetTrafficPolicy())
	}
	return out
}

// PassesThrough reports whether a load balancer is PASSTHROUGH, which forwards connections to their
// original destination.
func PassesThrough(b *networking.LoadBalancerSettings) bool {
	return b.GetSimple() == networking.LoadBalancerSettings_PASSTHROUGH
}

// parentsAnnotation lists the Kubernetes objects that a config was generated from, each as
// "Kind/namespace.name" (Istio 1.30).
const parentsAnnotation = "internal.istio.io/parents"

// standsForPolicies reports whether a DestinationRule was generated from BackendTLSPolicies.
func standsForPolicies(c *configstore.Config) bool {
	return strings.HasPrefix(c.Annotations[parentsAnnotation], "BackendTLSPolicy/")
}

// namingServers returns the spec of a DestinationRule with the subject names that servers must
// present. If a BackendTLSPolicy has no explicit names, its SNI is required, as the Gateway API
// says. A DestinationRule of a user without names is unchanged: its clusters require the service
// accounts of the service or, without these, accept any certificate of the authority.
func namingServers(c *configstore.Config, spec *networking.DestinationRule) *networking.DestinationRule {
	if !standsForPolicies(c) {
		return spec
	}
	out := proto.CloneOf(spec)
	name := func(tls *networking.ClientTLSSettings) {
		if tls != nil && len(tls.GetSubjectAltNames()) == 0 && tls.GetSni() != "" {
			tls.SubjectAltNames = []string{tls.GetSni()}
		}
	}
	name(out.GetTrafficPolicy().GetTls())
	for _, port := range out.GetTrafficPolicy().GetPortLevelSettings() {
		name(port.GetTls())
	}
	return out
}

func (r *DestinationRule) labelKeys() []string {
	out := slices.Collect(maps.Keys(r.Selector))
	for _, p := range r.Policies() {
		out = append(out, FailoverKeys(p.GetLoadBalancer().GetLocalityLbSetting())...)
		out = append(out, FailoverKeys(p.GetLoadBalancer().GetZoneAwareLbSetting())...)
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
