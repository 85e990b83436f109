// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"strings"

	networking "istio.io/api/networking/v1alpha3"
	apitype "istio.io/api/type/v1beta1"
)

// checkWorkloadSelector checks spec.workloadSelector of the networking kinds; nil
// is fine.
func checkWorkloadSelector(spec *field, selector *networking.WorkloadSelector) {
	if selector == nil {
		return
	}
	at := spec.child("workloadSelector")
	checkSelectorLabels(at, "labels", selector.Labels)
	if len(selector.Labels) == 0 {
		at.child("labels").warn("is empty: will be applied to all workloads in the namespace")
	}
}

// checkPolicySelector is checkWorkloadSelector for the selectors of policies,
// which are written with matchLabels.
func checkPolicySelector(at *field, selector *apitype.WorkloadSelector) {
	if selector == nil {
		return
	}
	checkSelectorLabels(at, "matchLabels", selector.MatchLabels)
	if len(selector.MatchLabels) == 0 {
		at.child("matchLabels").warn("is empty: will be applied to all workloads in the namespace")
	}
}

func checkSelectorLabels(at *field, name string, labels map[string]string) {
	for place, value := range entries(at, name, labels) {
		switch {
		case place.key == "":
			place.refuse("key must not be empty")
		case strings.Contains(place.key, "*"):
			place.refuse("key must not contain a wildcard")
		}
		switch {
		case strings.Contains(value, "*"):
			place.refuse("must not contain a wildcard, is %q", value)
		case len(value) > maxLabelLength:
			place.refuse("must have at most %d characters, has %d", maxLabelLength, len(value))
		case place.key != "" && !strings.Contains(place.key, "*") && !isLabel(place.key, value):
			place.warn("selects no workload: no label has this key and value, %q", value)
		}
	}
}
