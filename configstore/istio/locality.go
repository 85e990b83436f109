// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"
)

// checkLocality checks how traffic prefers near endpoints; nil is fine.
func checkLocality(at *field, setting *networking.LocalityLoadBalancerSetting) {
	if setting == nil {
		return
	}
	ways := 0
	for _, used := range []bool{len(setting.Distribute) > 0, len(setting.Failover) > 0, len(setting.FailoverPriority) > 0} {
		if used {
			ways++
		}
	}
	if ways > 1 {
		at.refuse("must have only one of distribute, failover, failoverPriority")
	}
	checkDistribute(at, setting.Distribute)
	for i, failover := range setting.Failover {
		if failover == nil {
			at.elem("failover", i).refuseNull()
			continue
		}
		checkFailover(at.elem("failover", i), failover.From, failover.To)
	}
	checkFailoverPriority(at, setting.FailoverPriority)
}

// checkZoneAware checks how traffic stays within a zone; nil is fine.
func checkZoneAware(at *field, setting *networking.ZoneAwareLoadBalancerSetting) {
	if setting == nil {
		return
	}
	for i, failover := range setting.Failover {
		if failover == nil {
			at.elem("failover", i).refuseNull()
			continue
		}
		checkFailover(at.elem("failover", i), failover.From, failover.To)
	}
	checkFailoverPriority(at, setting.FailoverPriority)
	for i, priority := range setting.FailoverPriority {
		key, _, _ := strings.Cut(priority, "=")
		switch key {
		case "topology.kubernetes.io/region", "topology.kubernetes.io/zone", "topology.istio.io/subzone":
			at.elem("failoverPriority", i).refuse("must not be %s, which is always taken into account", key)
		}
	}
	if size := setting.MinClusterSize; size != nil && size.Value == 0 {
		at.child("minClusterSize").refuse("must be at least 1, is 0")
	}
}

func checkDistribute(at *field, rules []*networking.LocalityLoadBalancerSetting_Distribute) {
	origins := make(map[string]bool, len(rules))
	for i, rule := range rules {
		place := at.elem("distribute", i)
		if rule == nil {
			place.refuseNull()
			continue
		}
		checkLocalityForm(place.child("from"), rule.From)
		if origins[rule.From] {
			place.child("from").refuse("repeats %q", rule.From)
		}
		origins[rule.From] = true
		checkLocalityWeights(place, rule.To)
	}
	for i, rule := range rules {
		if covering := coveringLocality(origins, rule.GetFrom()); covering != "" {
			at.elem("distribute", i).child("from").refuse("is %q, which %q covers", rule.GetFrom(), covering)
		}
	}
}

func checkLocalityWeights(at *field, weights map[string]uint32) {
	start := at.out.mark()
	var total uint64
	targets := make(map[string]bool, len(weights))
	for locality, weight := range weights {
		targets[locality] = true
		total += uint64(weight)
		checkLocalityForm(at.entry("to", locality), locality)
		if weight < 1 || weight > 100 {
			at.entry("to", locality).refuse("must be 1–100, is %d", weight)
		}
	}
	for locality := range weights {
		if covering := coveringLocality(targets, locality); covering != "" {
			at.entry("to", locality).refuse("is covered by %q", covering)
		}
	}
	at.out.sortSince(start)
	if total != 100 {
		at.child("to").refuse("must add up to 100, adds up to %d", total)
	}
}

// checkLocalityForm refuses what is not "region/zone/subzone", which may end
// early and then with a wildcard.
func checkLocalityForm(at *field, locality string) {
	segments := strings.Split(locality, "/")
	switch {
	case len(segments) > 3 || slices.Contains(segments, ""):
		at.refuse("must be region/zone/subzone, is %q", locality)
	case strings.Contains(strings.TrimSuffix(locality, "*"), "*"):
		at.refuse("must have a wildcard at its end only, is %q", locality)
	}
}

// coveringLocality returns the wildcard among the localities that stands for the
// given one too, or "".
func coveringLocality(all map[string]bool, locality string) string {
	for end := range len(locality) {
		if wildcard := locality[:end] + "*"; wildcard != locality && all[wildcard] {
			return wildcard
		}
	}
	return ""
}

func checkFailover(at *field, from, to string) {
	checkRegion(at.child("from"), from)
	checkRegion(at.child("to"), to)
	if from != "" && from == to {
		at.child("to").refuse("must be another region than from, is %q", to)
	}
}

func checkRegion(at *field, region string) {
	switch {
	case region == "":
		at.refuse("is required")
	case strings.ContainsAny(region, "/*"):
		at.refuse("must be a region without zones and wildcards, is %q", region)
	}
}

// checkFailoverPriority checks a list of labels, written "key" or "key=value".
func checkFailoverPriority(at *field, priorities []string) {
	for i, priority := range priorities {
		key, value, _ := strings.Cut(priority, "=")
		if problem := labelKeyProblem(key); problem != "" {
			at.elem("failoverPriority", i).refuse("key %s, is %q", problem, key)
		}
		if value != "" && !isLabelName(value) {
			at.elem("failoverPriority", i).refuse("must have a label value after '=' (%s), is %q", labelNameRule, value)
		}
	}
}
