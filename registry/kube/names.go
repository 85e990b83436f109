// SPDX-License-Identifier: Apache-2.0

package kube

import "github.com/pilotkit/pilotkit/configstore"

// The labels and annotations of Kubernetes and Istio that mean something here.
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

	// annotationRedirection says that a node proxy has taken over the traffic of a pod.
	// As in Istio 1.30 it is the only annotation of a pod of which a proxy, or an
	// endpoint, gets anything.
	annotationRedirection = "ambient.istio.io/redirection"

	headless = "None"

	// The ports of gateways between networks, by Istio's convention.
	gatewayPort      = 15443
	gatewayHBONEPort = 15008
)

// DNSName returns the kind under which the DNS names of a host are named in push
// requests: a change of the endpoints of a headless service whose ports are all
// HTTP changes the names that a proxy resolves, and nothing else.
func DNSName() configstore.GroupVersionKind { return configstore.GroupVersionKind{Kind: "DNSName"} }

// ReasonHeadlessEndpoint and ReasonNetworks are reasons of pushes that only a
// Kubernetes registry has, with the texts of Istio.
const (
	ReasonHeadlessEndpoint = "headlessendpoint"
	ReasonNetworks         = "networks"
)
