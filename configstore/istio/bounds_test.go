// SPDX-License-Identifier: Apache-2.0

package istio_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
)

func found(t *testing.T, kind configstore.GroupVersionKind, spec proto.Message) (warnings, violations []string) {
	t.Helper()
	schema, _ := istio.Schemas().Find(kind)
	w, v := schema.Validate(configOf(schema, spec))
	return lines(w), lines(v)
}

// TestSpellings: addresses are compared, and host names without regard to case.
func TestSpellings(t *testing.T) {
	t.Parallel()
	warnings, violations := found(t, istio.ServiceEntry, &networking.ServiceEntry{
		Hosts:      []string{"a.example.com", "A.example.com"},
		Addresses:  []string{"::1", "10.0.0.1", "0:0:0:0:0:0:0:1", "::ffff:10.0.0.1", "10.0.0.1/32", "10.1.0.0/16", "10.1.2.3/16", "::2"},
		Ports:      []*networking.ServicePort{{Number: 80, Name: "http", Protocol: "HTTP"}},
		Resolution: networking.ServiceEntry_STATIC,
	})
	want := []string{
		`spec.hosts[1]: repeats spec.hosts[0]: "A.example.com"`,
		`spec.addresses[2]: repeats spec.addresses[0]: "0:0:0:0:0:0:0:1"`,
		`spec.addresses[3]: repeats spec.addresses[1]: "::ffff:10.0.0.1"`,
		`spec.addresses[4]: repeats spec.addresses[1]: "10.0.0.1/32"`,
		`spec.addresses[6]: repeats spec.addresses[5]: "10.1.2.3/16"`,
	}
	if diff := cmp.Diff(want, warnings); diff != "" || violations != nil {
		t.Errorf("%q (-want +got):\n%s", violations, diff)
	}
	warnings, _ = found(t, istio.Gateway, &networking.Gateway{Selector: map[string]string{"a": "b"}, Servers: []*networking.Server{{
		Port: &networking.Port{Number: 80, Name: "http", Protocol: "HTTP"}, Hosts: []string{"a.example.com", "a.Example.com"},
	}}})
	if diff := cmp.Diff([]string{`spec.servers[0].hosts[1]: repeats hosts[0]: "a.Example.com"`}, warnings); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for endpoint, accepted := range map[string]bool{
		"[0:0:0:0:0:0:0:1]:80": true, "[0:0:0:0:0:0:0:0]:80": true, "0.0.0.0:80": true, "127.0.0.1:80": true, ":80": true,
		"[::2]:80": false, "127.0.0.2:80": false, "[::ffff:127.0.0.1]:80": false, "a:80": false,
	} {
		_, violations := found(t, istio.Sidecar, &networking.Sidecar{Ingress: []*networking.IstioIngressListener{{
			Port: &networking.SidecarPort{Number: 80, Name: "http", Protocol: "HTTP"}, DefaultEndpoint: endpoint,
		}}})
		if (violations == nil) != accepted {
			t.Errorf("%s: %q", endpoint, violations)
		}
	}
}

// TestLengths has strings at and above the limits of Envoy.
func TestLengths(t *testing.T) {
	t.Parallel()
	for over, refused := range []int{0, 5} {
		long := strings.Repeat("a", 16384+over)
		_, violations := found(t, istio.VirtualService, &networking.VirtualService{Hosts: []string{"a"}, Http: []*networking.HTTPRoute{{
			Route: []*networking.HTTPRouteDestination{{Destination: &networking.Destination{Host: "a"}}},
			Headers: &networking.Headers{Request: &networking.Headers_HeaderOperations{
				Set: map[string]string{long: "a", "b": long}, Remove: []string{long},
			}},
		}}})
		cookie := &networking.LoadBalancerSettings_ConsistentHashLB_HTTPCookie{
			Name: "a", Attributes: []*networking.LoadBalancerSettings_ConsistentHashLB_HTTPCookie_Attribute{{Name: long, Value: long}},
		}
		_, more := found(t, istio.DestinationRule, &networking.DestinationRule{Host: "a", TrafficPolicy: &networking.TrafficPolicy{
			LoadBalancer: &networking.LoadBalancerSettings{LbPolicy: &networking.LoadBalancerSettings_ConsistentHash{
				ConsistentHash: &networking.LoadBalancerSettings_ConsistentHashLB{
					HashKey: &networking.LoadBalancerSettings_ConsistentHashLB_HttpCookie{HttpCookie: cookie},
				},
			}},
		}})
		if all := slices.Concat(violations, more); len(all) != refused {
			t.Errorf("%d bytes: %q", len(long), all)
		}
	}
}

// TestManyPorts: more ports than are compared one by one.
func TestManyPorts(t *testing.T) {
	t.Parallel()
	entry := &networking.ServiceEntry{
		Hosts: []string{"a.example.com"}, Resolution: networking.ServiceEntry_STATIC,
		Endpoints: []*networking.WorkloadEntry{{Address: "10.0.0.1", Ports: map[string]uint32{"p0": 1, "p19": 1, "p20": 1}}},
	}
	for i := range 20 {
		entry.Ports = append(entry.Ports, &networking.ServicePort{Number: uint32(i + 1), Name: fmt.Sprintf("p%d", i), Protocol: "HTTP"})
	}
	_, violations := found(t, istio.ServiceEntry, entry)
	if diff := cmp.Diff([]string{"spec.endpoints[0].ports[p20]: must name a port of the entry"}, violations); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestFindingsHaveABound: of many findings the first are listed, in the order of the
// fields also where they are in a map.
func TestFindingsHaveABound(t *testing.T) {
	t.Parallel()
	entry := &networking.WorkloadEntry{Address: "10.0.0.1", Labels: map[string]string{}}
	service := &networking.VirtualService{}
	for i := range 1000 {
		entry.Labels[fmt.Sprintf("k%03d", i)] = "-"
		service.Hosts = append(service.Hosts, "-")
	}
	_, ofMap := found(t, istio.WorkloadEntry, entry)
	_, ofList := found(t, istio.VirtualService, service)
	for name, got := range map[string][]string{"spec.labels[k%03d]": ofMap, "spec.hosts[%d]": ofList} {
		if len(got) != configstore.MaxViolations+1 || !strings.HasPrefix(got[100], "and ") {
			t.Fatalf("%d findings: %q", len(got), got)
		}
		if want := fmt.Sprintf(name, 99); name != "spec.hosts[%d]" && !strings.HasPrefix(got[99], want) {
			t.Errorf("%s, want %s", got[99], want)
		}
	}
	if ofMap[100] != "and 900 more" {
		t.Error(ofMap[100])
	}
	deep := &structpb.Struct{Fields: map[string]*structpb.Value{"typed_config": structpb.NewBoolValue(true)}}
	for range 1000 {
		deep = &structpb.Struct{Fields: map[string]*structpb.Value{"abcdef": structpb.NewStructValue(deep)}}
	}
	_, ofDepth := found(t, istio.EnvoyFilter, &networking.EnvoyFilter{ConfigPatches: []*networking.EnvoyFilter_EnvoyConfigObjectPatch{{
		ApplyTo: networking.EnvoyFilter_CLUSTER, Patch: &networking.EnvoyFilter_Patch{Operation: networking.EnvoyFilter_Patch_ADD, Value: deep},
	}}})
	if len(ofDepth) != 1 || len(ofDepth[0]) > 1000 {
		t.Errorf("%q", ofDepth)
	}
}
