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
		features.SupportUDPRoute:                        "UDPRoutes are ignored",
		features.SupportTLSRouteModeTerminate:           "routes of listeners that terminate TLS without HTTP do not take effect",
		features.SupportTLSRouteModeMixed:               "as TLSRouteModeTerminate",
		features.SupportHTTPRouteRetry:                  "not all retries that the suite asks for are made",
		features.SupportHTTPRouteRetryBackendTimeout:    "as HTTPRouteRetry",
		features.SupportHTTPRouteRetryConnectionError:   "as HTTPRouteRetry",
		features.SupportBackendTLSPolicy:                "requests to backends of some policies fail: of BackendTLSPolicy and BackendTLSPolicyConflictResolution not all parts pass",
		features.SupportBackendTLSPolicySANValidation:   "needs BackendTLSPolicy",
		features.SupportGatewayBackendClientCertificate: "the certificate that a Gateway shows to backends is ignored",
	}
	for f := range features.SetsToNamesSet(features.MeshCoreFeatures, features.MeshExtendedFeatures) {
		out[f] = "a mesh, not a gateway"
	}
	return out
}

// skipped are the tests that are skipped although their features are claimed, and why.
func skipped() map[string]string {
	return map[string]string{
		"TLSRouteListenerTerminateNotSupported": "a listener that terminates TLS is Accepted, with or without HTTP, and should not be without TLSRouteModeTerminate",
	}
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
