// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"
)

// checkLocality checks how traffic prefers near endpoints; nil is fine.
func checkLocality(at *field, setting *networking.LocalityLoadBalancerSetting) {
	if len(setting.GetDistribute()) > 0 && len(setting.GetFailover()) > 0 {
		at.refuse("must have only one of distribute, failover")
	}
	checkDistribute(at, setting.GetDistribute())
	checkFailovers(at, setting.GetFailover())
	checkFailoverPriority(at, setting.GetFailoverPriority())
	if len(setting.GetFailover()) > 0 {
		checkNoTopology(at, setting.GetFailoverPriority(), "beside failover")
	}
}

// checkZoneAware checks how traffic stays within a zone; nil is fine.
func checkZoneAware(at *field, setting *networking.ZoneAwareLoadBalancerSetting) {
	checkFailovers(at, setting.GetFailover())
	checkFailoverPriority(at, setting.GetFailoverPriority())
	checkNoTopology(at, setting.GetFailoverPriority(), "here, where it is always taken into account")
	if size := setting.GetMinClusterSize(); size != nil && size.Value == 0 {
		at.child("minClusterSize").refuse("must be at least 1, is 0")
	}
}

// failsOver is what both settings say about where traffic goes to when the near
// endpoints fail.
type failsOver interface {
	GetFailoverPriority() []string
}

// warnFailover warns of a failover that nothing will cause: without outlier
// detection no endpoint is taken for a failed one.
func warnFailover(at *field, failovers int, setting failsOver) {
	if failovers > 0 || len(setting.GetFailoverPriority()) > 0 {
		at.warn("has a failover, which has no effect without outlierDetection")
	}
}

func checkDistribute(at *field, rules []*networking.LocalityLoadBalancerSetting_Distribute) {
	origins := make(map[string]bool, len(rules))
	var wildcards localityWildcards
	for place, rule := range elements(at, "distribute", rules) {
		checkLocalityForm(place.child("from"), rule.From)
		if origins[rule.From] {
			place.child("from").refuse("repeats %q", rule.From)
		}
		origins[rule.From] = true
		wildcards.add(rule.From)
		checkLocalityWeights(place, rule.To)
	}
	for i, rule := range rules {
		if covering := wildcards.covering(rule.GetFrom()); covering != "" {
			at.elem("distribute", i).child("from").refuse("is %q, which %q covers", rule.GetFrom(), covering)
		}
	}
}

func checkLocalityWeights(at *field, weights map[string]uint32) {
	var wildcards localityWildcards
	for locality := range weights {
		wildcards.add(locality)
	}
	var total uint64
	for place, weight := range entries(at, "to", weights) {
		total += uint64(weight)
		checkLocalityForm(place, place.key)
		if weight < 1 || weight > 100 {
			place.refuse("must be 1–100, is %d", weight)
		}
		if covering := wildcards.covering(place.key); covering != "" {
			place.refuse("is covered by %q", covering)
		}
	}
	if total != 100 {
		at.child("to").refuse("must add up to 100, adds up to %d", total)
	}
}

// checkLocalityForm rejects strings that are not of the form "region/zone/subzone". The form may
// end early, and then with a wildcard.
func checkLocalityForm(at *field, locality string) {
	segments := strings.Split(locality, "/")
	switch {
	case len(segments) > 3 || slices.Contains(segments, ""):
		at.refuse("must be region/zone/subzone, is %q", locality)
	case strings.Contains(strings.TrimSuffix(locality, "*"), "*"):
		at.refuse("must have a wildcard at its end only, is %q", locality)
	}
}

// localityWildcards holds what stands before the "*" of localities.
type localityWildcards struct{ prefixTree[struct{}] }

func (w *localityWildcards) add(locality string) {
	if prefix, ok := strings.CutSuffix(locality, "*"); ok {
		w.prefixTree.add(prefix, struct{}{})
	}
}

// covering returns a wildcard that stands for the given locality too, and is not
// the locality, or "".
func (w *localityWildcards) covering(locality string) string {
	end, _, ok := w.shortest(locality)
	if !ok || end == len(locality) || locality[end:] == "*" {
		return ""
	}
	return locality[:end] + "*"
}

// failover is one of either setting.
type failover interface {
	comparable
	GetFrom() string
	GetTo() string
}

func checkFailovers[F failover](at *field, failovers []F) {
	for place, f := range elements(at, "failover", failovers) {
		checkRegion(place.child("from"), f.GetFrom())
		checkRegion(place.child("to"), f.GetTo())
		if f.GetFrom() == f.GetTo() {
			place.child("to").refuse("must be another region than from, is %q", f.GetTo())
		}
	}
}

func checkRegion(at *field, region string) {
	switch {
	case region == "":
		at.warn("is empty, which is not a region")
	case strings.ContainsAny(region, "/*"):
		at.refuse("must be a region without zones and wildcards, is %q", region)
	}
}

// maxFailoverLabels bounds the priorities of endpoints. Each label makes one, and Envoy accepts
// 129.
const maxFailoverLabels = 16

// checkFailoverPriority checks a list of labels, written "key" or "key=value".
func checkFailoverPriority(at *field, priorities []string) {
	if n := len(priorities); n > maxFailoverLabels {
		at.child("failoverPriority").refuse("must have at most %d elements, for each of which a proxy has a load balancer, has %d", maxFailoverLabels, n)
	}
	for i, priority := range priorities {
		key, value, _ := strings.Cut(priority, "=")
		if problem := labelKeyProblem(key); problem != "" {
			at.elem("failoverPriority", i).warn("has no effect: the key %s, is %q", problem, key)
		}
		if value != "" && !isLabelName(value) {
			at.elem("failoverPriority", i).warn("has no effect: the part after '=' is not a label value (%s), is %q", labelNameRule, value)
		}
	}
}

// checkNoTopology refuses the labels of the topology among priorities.
func checkNoTopology(at *field, priorities []string, where string) {
	for i, priority := range priorities {
		switch priority {
		case "topology.kubernetes.io/region", "topology.kubernetes.io/zone", "topology.istio.io/subzone":
			at.elem("failoverPriority", i).refuse("must not be %s %s", priority, where)
		}
	}
}
