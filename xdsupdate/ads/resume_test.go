// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"context"
	"maps"
	"slices"
	"testing"
	"testing/synctest"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// TestClaims: a delta client that comes back is sent the differences to the resources that it
// lists, whether or not others have the present ones.
func TestClaims(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := serve(t, ads.Options{})
		f.setTexts(map[string]string{"a": "1", "b": "2", "c": "3"})
		stays := f.client(xdstest.ClientOptions{Delta: true, Node: node("stays", "shop")})
		f.subscribe(stays, customType)
		f.await(stays, customType, "a", "b", "c")
		versions := make(map[string]string)
		for _, r := range stays.Responses()[0].Resources {
			versions[r.Name] = r.Version
		}
		f.waitApplied()

		// comeBack returns the names that are sent to a client that lists some versions, until
		// there are as many as expected.
		comeBack := func(want int, versions map[string]string, names ...string) []string {
			t.Helper()
			ctx, cancel := context.WithCancel(f.context())
			defer cancel()
			stream, err := discovery.NewAggregatedDiscoveryServiceClient(f.dial()).DeltaAggregatedResources(ctx)
			if err != nil {
				t.Fatal(err)
			}
			request := &discovery.DeltaDiscoveryRequest{
				Node: node("back", "shop"), TypeUrl: customType, InitialResourceVersions: versions, ResourceNamesSubscribe: names,
			}
			var out []string
			for first := true; first || len(out) < want; first = false {
				if err := stream.Send(request); err != nil {
					t.Fatal(err)
				}
				response, err := stream.Recv()
				if err != nil {
					t.Fatal(err)
				}
				for _, r := range response.GetResources() {
					out = append(out, r.GetName())
				}
				out = append(out, response.GetRemovedResources()...)
				request = &discovery.DeltaDiscoveryRequest{TypeUrl: customType, ResponseNonce: response.GetNonce()}
			}
			slices.Sort(out)
			return out
		}
		with := func(change func(m map[string]string)) map[string]string {
			out := maps.Clone(versions)
			change(out)
			return out
		}

		for _, test := range []struct {
			name     string
			versions map[string]string
			names    []string
			want     []string
		}{
			{"equal", versions, nil, nil},
			{"less", with(func(m map[string]string) { delete(m, "b") }), nil, []string{"b"}},
			{"more", with(func(m map[string]string) { m["d"] = m["a"] }), nil, []string{"d"}},
			{"another version", with(func(m map[string]string) { m["b"] = m["a"] }), nil, []string{"b"}},
			{"versions of another server", with(func(m map[string]string) { m["a"], m["b"] = "v1.2", "ABCDEF" }), nil, []string{"a", "b"}},
			{"a version that is too long", with(func(m map[string]string) { m["a"] = "0" + m["a"] + "0000000000000000" }), nil, []string{"a"}},
			{"contents under each other's names", with(func(m map[string]string) { m["a"], m["b"] = m["b"], m["a"] }), nil, []string{"a", "b"}},
			{"names", with(func(m map[string]string) { delete(m, "c"); delete(m, "b") }), []string{"a", "b"}, []string{"b"}},
		} {
			for range 2 { // the second may get the content of the first
				if got := comeBack(len(test.want), test.versions, test.names...); !slices.Equal(got, test.want) {
					t.Errorf("%s: sent %q, want %q", test.name, got, test.want)
				}
			}
		}

		f.setTexts(map[string]string{"a": "2", "b": "1", "c": "3"})
		f.waitApplied()
		if got, want := comeBack(2, versions), []string{"a", "b"}; !slices.Equal(got, want) {
			t.Errorf("contents have changed their names: sent %q, want %q", got, want)
		}
	})
}
