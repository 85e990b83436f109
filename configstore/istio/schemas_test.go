// SPDX-License-Identifier: Apache-2.0

package istio_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
)

// TestSchemas holds the table of Istio 1.30's kinds.
func TestSchemas(t *testing.T) {
	want := strings.TrimSpace(`
security.istio.io/v1/AuthorizationPolicy v1beta1 authorizationpolicies istio.security.v1beta1.AuthorizationPolicy istio.meta.v1alpha1.IstioStatus
networking.istio.io/v1/DestinationRule v1alpha3,v1beta1 destinationrules istio.networking.v1alpha3.DestinationRule istio.meta.v1alpha1.IstioStatus
networking.istio.io/v1alpha3/EnvoyFilter - envoyfilters istio.networking.v1alpha3.EnvoyFilter istio.meta.v1alpha1.IstioStatus
networking.istio.io/v1/Gateway v1alpha3,v1beta1 gateways istio.networking.v1alpha3.Gateway istio.meta.v1alpha1.IstioStatus
security.istio.io/v1/PeerAuthentication v1beta1 peerauthentications istio.security.v1beta1.PeerAuthentication istio.meta.v1alpha1.IstioStatus
networking.istio.io/v1beta1/ProxyConfig - proxyconfigs istio.networking.v1beta1.ProxyConfig istio.meta.v1alpha1.IstioStatus
security.istio.io/v1/RequestAuthentication v1beta1 requestauthentications istio.security.v1beta1.RequestAuthentication istio.meta.v1alpha1.IstioStatus
networking.istio.io/v1/ServiceEntry v1alpha3,v1beta1 serviceentries istio.networking.v1alpha3.ServiceEntry istio.networking.v1alpha3.ServiceEntryStatus
networking.istio.io/v1/Sidecar v1alpha3,v1beta1 sidecars istio.networking.v1alpha3.Sidecar istio.meta.v1alpha1.IstioStatus
telemetry.istio.io/v1/Telemetry v1alpha1 telemetries istio.telemetry.v1alpha1.Telemetry istio.meta.v1alpha1.IstioStatus
extensions.istio.io/v1alpha1/TrafficExtension - trafficextensions istio.extensions.v1alpha1.TrafficExtension istio.meta.v1alpha1.IstioStatus
networking.istio.io/v1/VirtualService v1alpha3,v1beta1 virtualservices istio.networking.v1alpha3.VirtualService istio.meta.v1alpha1.IstioStatus
extensions.istio.io/v1alpha1/WasmPlugin - wasmplugins istio.extensions.v1alpha1.WasmPlugin istio.meta.v1alpha1.IstioStatus
networking.istio.io/v1/WorkloadEntry v1alpha3,v1beta1 workloadentries istio.networking.v1alpha3.WorkloadEntry istio.meta.v1alpha1.IstioStatus
networking.istio.io/v1/WorkloadGroup v1alpha3,v1beta1 workloadgroups istio.networking.v1alpha3.WorkloadGroup istio.meta.v1alpha1.IstioStatus
`)
	var got []string
	for _, s := range istio.Schemas().All() {
		aliases := strings.Join(s.Aliases, ",")
		if aliases == "" {
			aliases = "-"
		}
		got = append(got, strings.Join([]string{
			s.GroupVersionKind.String(), aliases, s.Plural,
			string(s.NewSpec().ProtoReflect().Descriptor().FullName()),
			string(s.NewStatus().ProtoReflect().Descriptor().FullName()),
		}, " "))
		if s.ClusterScoped || s.Validate == nil {
			t.Errorf("%s: cluster-scoped %v, validator %v", s.GroupVersionKind, s.ClusterScoped, s.Validate != nil)
		}
	}
	if diff := cmp.Diff(strings.Split(want, "\n"), got); diff != "" {
		t.Errorf("schemas (-want +got):\n%s", diff)
	}
}

func TestAliases(t *testing.T) {
	schemas := istio.Schemas()
	for _, version := range []string{"v1", "v1alpha3", "v1beta1"} {
		kind := configstore.GroupVersionKind{Group: "networking.istio.io", Version: version, Kind: "ServiceEntry"}
		if got, ok := schemas.Find(kind); !ok || got.GroupVersionKind != istio.ServiceEntry {
			t.Errorf("Find(%s) = %s, %v", kind, got.GroupVersionKind, ok)
		}
	}
	if schemas.Has(configstore.GroupVersionKind{Group: "networking.istio.io", Version: "v2", Kind: "ServiceEntry"}) {
		t.Error("there is no v2")
	}
}

// TestSchemasAreIndependent: two control planes in one process share nothing
// that either could change.
func TestSchemasAreIndependent(t *testing.T) {
	first := istio.Schemas().All()
	first[0].Aliases[0] = "changed"
	if got := istio.Schemas().All()[0].Aliases[0]; got == "changed" {
		t.Error("changing the result of one call changed that of the next")
	}
}
