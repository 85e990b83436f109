// SPDX-License-Identifier: Apache-2.0

package serviceentry

import (
	"maps"

	"github.com/pilotkit/pilotkit/registry"
)

// The labels and annotations of Istio 1.30 that mean something here.
const (
	labelTLSMode           = "security.istio.io/tlsMode"
	labelWorkloadName      = "service.istio.io/workload-name"
	labelCanonicalName     = "service.istio.io/canonical-name"
	labelCanonicalRevision = "service.istio.io/canonical-revision"
	labelAutoAllocate      = "networking.istio.io/enable-autoallocate-ip"

	annotationRegistrationGroup   = "istio.io/autoRegistrationGroup"
	annotationHealthChecks        = "proxy.istio.io/health-checks-enabled"
	annotationTrafficDistribution = "networking.istio.io/traffic-distribution"
	annotationConnectStrategy     = "istio.io/connect-strategy"
)

// mergeLabels returns the labels of a WorkloadEntry. Labels of the metadata override labels of the
// spec. The result may alias one of the arguments.
func mergeLabels(metadata, spec map[string]string) registry.Labels {
	switch {
	case len(metadata) == 0:
		return spec
	case len(spec) == 0:
		return metadata
	}
	out := make(registry.Labels, len(metadata)+len(spec))
	maps.Copy(out, spec)
	maps.Copy(out, metadata)
	return out
}

// canonicalLabels returns a copy of the labels of a service with the two
// canonical ones added, by Istio 1.30's rules.
func canonicalLabels(labels registry.Labels, object string) registry.Labels {
	out := make(registry.Labels, len(labels)+2)
	maps.Copy(out, labels)
	out[labelCanonicalName] = firstLabel(labels, object, labelCanonicalName, "app.kubernetes.io/name", "app")
	out[labelCanonicalRevision] = firstLabel(labels, "latest", labelCanonicalRevision, "app.kubernetes.io/version", "version")
	return out
}

// firstLabel returns the value of the first of the keys that is set.
func firstLabel(labels registry.Labels, otherwise string, keys ...string) string {
	for _, k := range keys {
		if v, ok := labels[k]; ok {
			return v
		}
	}
	return otherwise
}
