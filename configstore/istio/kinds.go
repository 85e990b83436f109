// SPDX-License-Identifier: Apache-2.0

package istio

import "github.com/pilotkit/pilotkit/configstore"

// The API groups of Istio.
const (
	networkingGroup = "networking.istio.io"
	securityGroup   = "security.istio.io"
	telemetryGroup  = "telemetry.istio.io"
	extensionsGroup = "extensions.istio.io"
)

// The kinds, each in its canonical version. They are constants in all but form:
// assigning to them is forbidden.
//
//nolint:gochecknoglobals // Go has no constants of struct type.
var (
	AuthorizationPolicy   = configstore.GroupVersionKind{Group: securityGroup, Version: "v1", Kind: "AuthorizationPolicy"}
	DestinationRule       = configstore.GroupVersionKind{Group: networkingGroup, Version: "v1", Kind: "DestinationRule"}
	EnvoyFilter           = configstore.GroupVersionKind{Group: networkingGroup, Version: "v1alpha3", Kind: "EnvoyFilter"}
	Gateway               = configstore.GroupVersionKind{Group: networkingGroup, Version: "v1", Kind: "Gateway"}
	PeerAuthentication    = configstore.GroupVersionKind{Group: securityGroup, Version: "v1", Kind: "PeerAuthentication"}
	ProxyConfig           = configstore.GroupVersionKind{Group: networkingGroup, Version: "v1beta1", Kind: "ProxyConfig"}
	RequestAuthentication = configstore.GroupVersionKind{Group: securityGroup, Version: "v1", Kind: "RequestAuthentication"}
	ServiceEntry          = configstore.GroupVersionKind{Group: networkingGroup, Version: "v1", Kind: "ServiceEntry"}
	Sidecar               = configstore.GroupVersionKind{Group: networkingGroup, Version: "v1", Kind: "Sidecar"}
	Telemetry             = configstore.GroupVersionKind{Group: telemetryGroup, Version: "v1", Kind: "Telemetry"}
	TrafficExtension      = configstore.GroupVersionKind{Group: extensionsGroup, Version: "v1alpha1", Kind: "TrafficExtension"}
	VirtualService        = configstore.GroupVersionKind{Group: networkingGroup, Version: "v1", Kind: "VirtualService"}
	WasmPlugin            = configstore.GroupVersionKind{Group: extensionsGroup, Version: "v1alpha1", Kind: "WasmPlugin"}
	WorkloadEntry         = configstore.GroupVersionKind{Group: networkingGroup, Version: "v1", Kind: "WorkloadEntry"}
	WorkloadGroup         = configstore.GroupVersionKind{Group: networkingGroup, Version: "v1", Kind: "WorkloadGroup"}
)
