// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"google.golang.org/protobuf/proto"
	meta "istio.io/api/meta/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/options"
)

// Schemas returns the fifteen kinds in alphabetical order. All are namespaced.
// Messages keep the Go types of their first version (ServiceEntry is a
// networking/v1alpha3 message); the v1 packages of istio.io/api are aliases of
// the same types. Options may be left out; more than one is a mistake that panics.
func Schemas(opts ...Options) configstore.Schemas {
	o := options.One("istio.Schemas", opts)
	serviceEntry := schema(ServiceEntry, "serviceentries", serviceEntryRules)
	serviceEntry.Status = &networking.ServiceEntryStatus{}
	serviceEntry.Equal = equalServiceEntries
	workloadEntry := schema(WorkloadEntry, "workloadentries", workloadEntryRules)
	workloadEntry.Equal = equalWorkloadEntries
	b := configstore.NewSchemasBuilder()
	for _, s := range []configstore.Schema{
		closing(schema(AuthorizationPolicy, "authorizationpolicies", authorizationPolicyRules), closedAuthorizationPolicy),
		schema(DestinationRule, "destinationrules", destinationRuleRules),
		schema(EnvoyFilter, "envoyfilters", envoyFilterRules(o.EnvoyTypes)),
		schema(Gateway, "gateways", gatewayRules),
		closing(schema(PeerAuthentication, "peerauthentications", peerAuthenticationRules), closedPeerAuthentication),
		schema(ProxyConfig, "proxyconfigs", proxyConfigRules),
		closing(schema(RequestAuthentication, "requestauthentications", requestAuthenticationRules), closedRequestAuthentication),
		serviceEntry,
		schema(Sidecar, "sidecars", sidecarRules),
		schema(Telemetry, "telemetries", telemetryRules),
		schema(TrafficExtension, "trafficextensions", trafficExtensionRules),
		schema(VirtualService, "virtualservices", virtualServiceRules),
		schema(WasmPlugin, "wasmplugins", wasmPluginRules),
		workloadEntry,
		schema(WorkloadGroup, "workloadgroups", workloadGroupRules),
	} {
		b.MustAdd(s)
	}
	return b.Build()
}

// schema describes a kind whose specs are the messages that its rules take.
func schema[T proto.Message](kind configstore.GroupVersionKind, plural string, rules func(*field, configstore.Config, T)) configstore.Schema {
	var spec T
	return configstore.Schema{
		GroupVersionKind: kind,
		Aliases:          aliases(kind),
		Plural:           plural,
		Spec:             spec.ProtoReflect().New().Interface(),
		Status:           &meta.IstioStatus{},
		Validate:         validator(rules),
		Text:             textRule,
	}
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
