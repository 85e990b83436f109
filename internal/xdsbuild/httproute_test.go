// SPDX-License-Identifier: Apache-2.0

package xdsbuild_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// recordedRoutes are rules, and the routes that Istio made of them for proxies.
type recordedRoutes struct {
	Rules  []json.RawMessage
	Scopes []recordedScope
	// Hash has the consistent hashes of destinations, by "HOST" or "HOST:PORT".
	Hash map[string]json.RawMessage
}

type recordedScope struct {
	Proxy, Namespace, Gateway string
	Labels                    map[string]string
	GRPC                      bool
	Port                      uint32
	Routes                    []json.RawMessage
}

func decode[M proto.Message](tb testing.TB, data []byte, m M) M {
	tb.Helper()
	if err := protojson.Unmarshal(data, m); err != nil {
		tb.Fatalf("%s: %v", data, err)
	}
	return m
}

func (r *recordedRoutes) scope(tb testing.TB, s recordedScope) *xdsbuild.RouteScope {
	tb.Helper()
	out := &xdsbuild.RouteScope{
		Port: s.Port, Gateway: s.Gateway, Namespace: s.Namespace, Labels: s.Labels,
		ConsistentHash: func(d *networking.Destination) *networking.LoadBalancerSettings_ConsistentHashLB {
			port := d.GetPort().GetNumber()
			if port == 0 {
				port = s.Port
			}
			for _, key := range []string{d.GetHost() + ":" + strconv.Itoa(int(port)), d.GetHost()} {
				if data, ok := r.Hash[key]; ok {
					return decode(tb, data, &networking.LoadBalancerSettings_ConsistentHashLB{})
				}
			}
			return nil
		},
	}
	if s.GRPC {
		out.Client = envoy.ForGRPC
	}
	return out
}

// TestRecordedRoutes compares with what Istio sent; empty configurations of
// extensions are not in the recordings.
func TestRecordedRoutes(t *testing.T) {
	files, err := filepath.Glob("testdata/routes/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("recordings: %v, %v", files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var recorded recordedRoutes
			if err := json.Unmarshal(data, &recorded); err != nil {
				t.Fatal(err)
			}
			var rules []*networking.HTTPRoute
			for _, r := range recorded.Rules {
				rules = append(rules, decode(t, r, &networking.HTTPRoute{}))
			}
			for _, s := range recorded.Scopes {
				var want []*routev3.Route
				for _, r := range s.Routes {
					want = append(want, withSuccessors(decode(t, r, &routev3.Route{}), s.GRPC))
				}
				got := recorded.scope(t, s).Routes(rules)
				validRoutes(t, got)
				got = slices.DeleteFunc(got, ofPortWritten)
				for _, r := range got {
					for _, p := range r.GetRoute().GetRetryPolicy().GetRetryHostPredicate() {
						p.ConfigType = nil
					}
				}
				if diff := cmp.Diff(want, got, protocmp.Transform(), protocmp.SortRepeated(func(a, b *routev3.HeaderMatcher) bool {
					return a.GetName()+a.String() < b.GetName()+b.String()
				})); diff != "" {
					t.Errorf("routes of %s on port %d (-recorded +got):\n%s", s.Proxy, s.Port, diff)
				}
			}
		})
	}
}

// ofPortWritten reports whether a route is one for hosts with a port, before a redirect
// that was recorded.
func ofPortWritten(r *routev3.Route) bool {
	return r.GetRedirect() != nil && slices.ContainsFunc(r.GetMatch().GetHeaders(), func(h *routev3.HeaderMatcher) bool {
		return h.GetStringMatch().GetContains() == ":"
	})
}

// withSuccessors brings a recorded route into the form without deprecated fields.
func withSuccessors(r *routev3.Route, grpc bool) *routev3.Route {
	a := r.GetRoute()
	limit := a.GetMaxGrpcTimeout() //nolint:staticcheck // It was recorded.
	if limit == nil {
		return r
	}
	a.MaxGrpcTimeout = nil //nolint:staticcheck // It was recorded.
	if limit.AsDuration() == 0 && !grpc {
		a.MaxStreamDuration = &routev3.RouteAction_MaxStreamDuration{GrpcTimeoutHeaderMax: durationpb.New(0)}
	}
	return r
}

func validRoutes(tb testing.TB, routes []*routev3.Route) {
	tb.Helper()
	for _, r := range routes {
		if err := r.ValidateAll(); err != nil {
			tb.Errorf("%v: %v", r, err)
		}
	}
}
