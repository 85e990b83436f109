// SPDX-License-Identifier: Apache-2.0

package istio

import (
	extensions "istio.io/api/extensions/v1alpha1"
	meta "istio.io/api/meta/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"
	proxyconfig "istio.io/api/networking/v1beta1"
	security "istio.io/api/security/v1beta1"
	telemetry "istio.io/api/telemetry/v1alpha1"

	"github.com/pilotkit/pilotkit/configstore"
)

// Schemas returns the fifteen kinds in alphabetical order. All are namespaced.
// Messages keep the Go types of their first version (ServiceEntry is a
// networking/v1alpha3 message); the v1 packages of istio.io/api are aliases of
// the same types.
func Schemas() configstore.Schemas {
	b := configstore.NewSchemasBuilder()
	status := &meta.IstioStatus{}
	for _, s := range []configstore.Schema{
		{GroupVersionKind: AuthorizationPolicy, Plural: "authorizationpolicies", Spec: &security.AuthorizationPolicy{}},
		{GroupVersionKind: DestinationRule, Plural: "destinationrules", Spec: &networking.DestinationRule{}},
		{GroupVersionKind: EnvoyFilter, Plural: "envoyfilters", Spec: &networking.EnvoyFilter{}},
		{GroupVersionKind: Gateway, Plural: "gateways", Spec: &networking.Gateway{}},
		{GroupVersionKind: PeerAuthentication, Plural: "peerauthentications", Spec: &security.PeerAuthentication{}},
		{GroupVersionKind: ProxyConfig, Plural: "proxyconfigs", Spec: &proxyconfig.ProxyConfig{}},
		{GroupVersionKind: RequestAuthentication, Plural: "requestauthentications", Spec: &security.RequestAuthentication{}},
		{GroupVersionKind: ServiceEntry, Plural: "serviceentries", Spec: &networking.ServiceEntry{}, Validate: validator(serviceEntryRules), Status: &networking.ServiceEntryStatus{}},
		{GroupVersionKind: Sidecar, Plural: "sidecars", Spec: &networking.Sidecar{}},
		{GroupVersionKind: Telemetry, Plural: "telemetries", Spec: &telemetry.Telemetry{}},
		{GroupVersionKind: TrafficExtension, Plural: "trafficextensions", Spec: &extensions.TrafficExtension{}},
		{GroupVersionKind: VirtualService, Plural: "virtualservices", Spec: &networking.VirtualService{}},
		{GroupVersionKind: WasmPlugin, Plural: "wasmplugins", Spec: &extensions.WasmPlugin{}},
		{GroupVersionKind: WorkloadEntry, Plural: "workloadentries", Spec: &networking.WorkloadEntry{}, Validate: validator(workloadEntryRules)},
		{GroupVersionKind: WorkloadGroup, Plural: "workloadgroups", Spec: &networking.WorkloadGroup{}, Validate: validator(workloadGroupRules)},
	} {
		s.Aliases = aliases(s.GroupVersionKind)
		if s.Status == nil {
			s.Status = status
		}
		b.MustAdd(s)
	}
	return b.Build()
}

// aliases returns the other versions that Istio 1.30 serves a kind under. Kinds
// that have not reached v1 have none.
func aliases(kind configstore.GroupVersionKind) []string {
	switch {
	case kind.Version != "v1":
		return nil
	case kind.Group == securityGroup:
		return []string{"v1beta1"}
	case kind.Group == telemetryGroup:
		return []string{"v1alpha1"}
	default:
		return []string{"v1alpha3", "v1beta1"}
	}
}
