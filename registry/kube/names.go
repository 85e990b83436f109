// SPDX-License-Identifier: Apache-2.0

package kube

import "github.com/pilotkit/pilotkit/configstore"

// The labels and annotations of Kubernetes and Istio that the registry reads.
const (
	labelServiceName     = "kubernetes.io/service-name"
	labelMultiCluster    = "multicluster.kubernetes.io/service-name"
	labelLegacyRegion    = "failure-domain.beta.kubernetes.io/region"
	labelLegacyZone      = "failure-domain.beta.kubernetes.io/zone"
	labelTLSMode         = "security.istio.io/tlsMode"
	labelWorkloadName    = "service.istio.io/workload-name"
	labelGatewayPort     = "networking.istio.io/gatewayPort"
	labelSessionCookie   = "istio.io/persistent-session"
	labelSessionHeader   = "istio.io/persistent-session-header"
	labelTemplateHash    = "pod-template-hash"
	labelRolloutHash     = "rollouts-pod-template-hash"
	labelDeployment      = "deploymentconfig"
	annotationExportTo   = "networking.istio.io/exportTo"
	annotationIdentities = "alpha.istio.io/canonical-serviceaccounts"
	annotationAccounts   = "alpha.istio.io/kubernetes-serviceaccounts"
	annotationTraffic    = "networking.istio.io/traffic-distribution"
	annotationNodes      = "traffic.istio.io/nodeSelector"

	// annotationRedirection reports that a node proxy has taken over the traffic of a pod. As in
	// Istio 1.30 it is the only annotation of a pod that affects proxies or endpoints.
	annotationRedirection = "ambient.istio.io/redirection"

	headless = "None"

	// The ports of gateways between networks, by Istio's convention.
	gatewayPort      = 15443
	gatewayHBONEPort = 15008
)

// dnsName returns the kind of a host's DNS names in push requests. A change of the endpoints of a
// headless service whose ports are all HTTP affects only the names that a proxy resolves.
func dnsName() configstore.GroupVersionKind { return configstore.GroupVersionKind{Kind: "DNSName"} }

// ReasonHeadlessEndpoint and ReasonNetworks are push reasons that only a Kubernetes registry has,
// with the texts of Istio.
const (
	ReasonHeadlessEndpoint = "headlessendpoint"
	ReasonNetworks         = "networks"
)
