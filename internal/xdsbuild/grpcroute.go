// SPDX-License-Identifier: Apache-2.0

package xdsbuild

import (
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	httpfault "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/fault/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// forGRPC returns routes that make gRPC clients handle calls as the given route makes an Envoy
// handle them. The clients support less than Envoy, and some reject a whole route configuration
// because of a field that others ignore (tested: grpc-go 1.84, grpc-js-xds 1.14 and C-core 1.51).
// Therefore the routes have
//
//   - no redirect and no direct response: a fault fails the matching calls with the status
//     that gRPC defines for the HTTP status. The cluster of the route is only formally required;
//   - nothing that only proxies do: mirrors, rewrites, CORS, header operations;
//   - no fault without a percentage, because it has no effect and grpc-js rejects it;
//   - the sum of weights, because C-core otherwise requires the weights to add up to 100;
//   - no match on properties that a call does not have: see grpcMatches.
func forGRPC(route *routev3.Route, cluster string) []*routev3.Route {
	var out []*routev3.Route
	for _, match := range grpcMatches(route.GetMatch()) {
		r := &routev3.Route{Match: match}
		if action := route.GetRoute(); action != nil {
			configureFilter(r, faultFilter, effectiveFault(route.GetTypedPerFilterConfig()[faultFilter]))
			r.Action = &routev3.Route_Route{Route: grpcAction(action)}
		} else {
			r = grpcFailure(match, answer(route), cluster)
		}
		r.Name, r.StatPrefix = route.GetName(), route.GetStatPrefix()
		out = append(out, r)
	}
	return out
}

// grpcFailure returns a route that fails all calls with the gRPC status of an HTTP status.
func grpcFailure(match *routev3.RouteMatch, status uint32, cluster string) *routev3.Route {
	r := &routev3.Route{Match: match, Action: &routev3.Route_Route{Route: &routev3.RouteAction{
		ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: cluster}, Timeout: durationpb.New(0),
	}}}
	configureFilter(r, faultFilter, failure(status))
	return r
}

// grpcAction returns the parts of an action that gRPC clients use.
func grpcAction(a *routev3.RouteAction) *routev3.RouteAction {
	out := &routev3.RouteAction{
		ClusterSpecifier:  a.GetClusterSpecifier(),
		Timeout:           a.GetTimeout(),
		MaxStreamDuration: a.GetMaxStreamDuration(),
		RetryPolicy:       a.GetRetryPolicy(),
		HashPolicy:        a.GetHashPolicy(),
	}
	if weighted := a.GetWeightedClusters(); weighted != nil {
		bare, sum := &routev3.WeightedCluster{}, uint32(0)
		for _, c := range weighted.GetClusters() {
			sum += c.GetWeight().GetValue()
			bare.Clusters = append(bare.Clusters, &routev3.WeightedCluster_ClusterWeight{Name: c.GetName(), Weight: c.GetWeight()})
		}
		if sum != 100 {
			bare.TotalWeight = wrapperspb.UInt32(sum) //nolint:staticcheck // On purpose.
		}
		out.ClusterSpecifier = &routev3.RouteAction_WeightedClusters{WeightedClusters: bare}
	}
	return out
}

// effectiveFault removes faults that are never injected. It returns nil for nil.
func effectiveFault(config *anypb.Any) *anypb.Any {
	var f httpfault.HTTPFault
	if config == nil || config.UnmarshalTo(&f) != nil {
		return nil
	}
	if f.GetDelay().GetPercentage() == nil {
		f.Delay = nil
	}
	if f.GetAbort().GetPercentage() == nil {
		f.Abort = nil
	}
	if f.GetDelay() == nil && f.GetAbort() == nil {
		return nil
	}
	return packed(&f)
}

// answer returns the HTTP status of a route that responds itself.
func answer(route *routev3.Route) uint32 {
	if r := route.GetDirectResponse(); r != nil {
		return r.GetStatus()
	}
	return 301 // to gRPC all redirects are the same failure
}

// failure returns a fault that fails every call.
func failure(status uint32) *anypb.Any {
	return packed(&httpfault.HTTPFault{Abort: &httpfault.FaultAbort{
		ErrorType:  &httpfault.FaultAbort_GrpcStatus{GrpcStatus: uint32(grpcStatus(status))},
		Percentage: &typev3.FractionalPercent{Numerator: 100},
	}})
}

// grpcStatus returns the gRPC status of a response that is not gRPC, as defined by gRPC's
// http-grpc-status-mapping.md.
func grpcStatus(http uint32) codes.Code {
	switch http {
	case 400:
		return codes.Internal
	case 401:
		return codes.Unauthenticated
	case 403:
		return codes.PermissionDenied
	case 404:
		return codes.Unimplemented
	case 429, 502, 503, 504:
		return codes.Unavailable
	default:
		return codes.Unknown
	}
}
