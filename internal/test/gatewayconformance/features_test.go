// SPDX-License-Identifier: Apache-2.0

package gatewayconformance

import (
	"maps"
	"slices"

	confv1 "sigs.k8s.io/gateway-api/conformance/apis/v1"
	"sigs.k8s.io/gateway-api/conformance/utils/suite"
	"sigs.k8s.io/gateway-api/pkg/features"
)

// className is that of the GatewayClass.
const className = "pilotkit"

func profiles() []suite.ConformanceProfileName {
	return []suite.ConformanceProfileName{
		suite.GatewayHTTPConformanceProfileName, suite.GatewayGRPCConformanceProfileName,
		suite.GatewayTLSConformanceProfileName, suite.GatewayTCPConformanceProfileName,
	}
}

// unsupported are the features of the suite that are not claimed, and why.
func unsupported() map[features.FeatureName]string {
	out := map[features.FeatureName]string{
		features.SupportUDPRoute:                      "UDPRoutes are ignored",
		features.SupportHTTPRouteRetryBackendTimeout:  "no test in the suite; an attempt that takes too long is not made again",
		features.SupportHTTPRouteRetryConnectionError: "no test in the suite; connections that fail, and refused streams, are tried again, but not those that are reset",
	}
	for f := range features.SetsToNamesSet(features.MeshCoreFeatures, features.MeshExtendedFeatures) {
		out[f] = "a mesh, not a gateway"
	}
	return out
}

// supported returns the features that are claimed, sorted.
func supported() []features.FeatureName {
	all := features.SetsToNamesSet(features.AllFeatures)
	for f := range unsupported() {
		all.Delete(f)
	}
	return slices.Sorted(maps.Keys(all))
}

func implementation() confv1.Implementation {
	return confv1.Implementation{
		Organization: "pilotkit", Project: "pilotkit", URL: "https://github.com/pilotkit/pilotkit", Version: "main",
		Contact: []string{"https://github.com/pilotkit/pilotkit/issues/new"},
	}
}
