// SPDX-License-Identifier: Apache-2.0

package envoy

import (
	"math"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcher "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	networking "istio.io/api/networking/v1alpha3"
)

// forward makes a route send requests to the destinations of a rule. The
// authority is what the header operations of the rule replace the request's by.
func (s *RouteScope) forward(out *routev3.Route, rule *networking.HTTPRoute, authority string) {
	action := &routev3.RouteAction{
		RetryPolicy:           s.retryPolicy(rule.GetRetries()),
		RequestMirrorPolicies: s.mirrors(rule),
	}
	if s.WholeElements && s.Client != ForGRPC {
		// A backend that does not exist is an error of the route, and none of a server.
		action.ClusterNotFoundResponseCode = routev3.RouteAction_INTERNAL_SERVER_ERROR
	}
	s.setTimeout(action, rule.GetTimeout())
	s.rewrite(action, out.GetMatch(), rule.GetRewrite(), authority)
	if destinations := rule.GetRoute(); len(destinations) == 1 {
		s.forwardToOne(out, action, destinations[0])
	} else if !s.forwardToSeveral(action, destinations) {
		return
	}
	out.Action = &routev3.Route_Route{Route: action}
}

// setTimeout limits the time of a request; nil is no limit. Envoy's default of
// 15 s would cut streams. gRPC clients know the limit by another name.
//
// Where there is no limit an Envoy ends calls of gRPC when the time is over that their
// client gives them (the header grpc-timeout). A limit leaves that to the client: an
// Envoy that is to look at the header ignores the limit, and a limit of the duration of
// streams, which it would take beside the header, ends websockets and uploads as well.
func (s *RouteScope) setTimeout(action *routev3.RouteAction, timeout *durationpb.Duration) {
	d := duration(timeout)
	if d == nil {
		d = &durationpb.Duration{}
	}
	action.Timeout = d
	switch {
	case s.Client == ForGRPC:
		action.MaxStreamDuration = &routev3.RouteAction_MaxStreamDuration{MaxStreamDuration: d}
	case d.AsDuration() == 0:
		action.MaxStreamDuration = deadlinesOfCalls()
	}
}

// deadlinesOfCalls lets an Envoy end calls of gRPC when their header says.
func deadlinesOfCalls() *routev3.RouteAction_MaxStreamDuration {
	return &routev3.RouteAction_MaxStreamDuration{GrpcTimeoutHeaderMax: durationpb.New(0)}
}

func (s *RouteScope) rewrite(action *routev3.RouteAction, m *routev3.RouteMatch, r *networking.HTTPRewrite, authority string) {
	if regex := r.GetUriRegexRewrite(); regex != nil {
		if isRegex(regex.GetMatch()) {
			action.RegexRewrite = &matcher.RegexMatchAndSubstitute{
				Pattern: &matcher.RegexMatcher{Regex: regex.GetMatch()}, Substitution: regex.GetRewrite(),
			}
		}
	} else {
		action.PrefixRewrite, action.RegexRewrite = s.replacement(m, r.GetUri())
	}
	if r.GetAuthority() != "" {
		authority = r.GetAuthority()
	}
	if authority != "" {
		action.HostRewriteSpecifier = &routev3.RouteAction_HostRewriteLiteral{HostRewriteLiteral: authority}
	}
}

// forwardToOne sends everything to one destination. Retries that look for
// another host would undo its consistent hash.
func (s *RouteScope) forwardToOne(out *routev3.Route, action *routev3.RouteAction, d *networking.HTTPRouteDestination) {
	action.ClusterSpecifier = &routev3.RouteAction_Cluster{Cluster: s.cluster(d.GetDestination())}
	if authority := applyHeaders(out, d.GetHeaders()); authority != "" && action.HostRewriteSpecifier == nil {
		action.HostRewriteSpecifier = &routev3.RouteAction_HostRewriteLiteral{HostRewriteLiteral: authority}
	}
	if action.HashPolicy = s.hashPolicies(d.GetDestination()); len(action.HashPolicy) > 0 && action.RetryPolicy != nil {
		action.RetryPolicy.RetryHostPredicate = nil
	}
}

// forwardToSeveral shares the requests among destinations by their weights. It
// returns false if none has a weight.
func (s *RouteScope) forwardToSeveral(action *routev3.RouteAction, destinations []*networking.HTTPRouteDestination) bool {
	weighted := &routev3.WeightedCluster{}
	total := uint64(0)
	for _, d := range destinations {
		weight := uint32(max(d.GetWeight(), 0))
		if total+uint64(weight) > math.MaxUint32 {
			weight = 0 // Clients refuse the configuration. Validation does not let it come to this.
		}
		if weight == 0 {
			continue
		}
		total += uint64(weight)
		o := operationsOf(d.GetHeaders())
		c := &routev3.WeightedCluster_ClusterWeight{
			Name: s.cluster(d.GetDestination()), Weight: wrapperspb.UInt32(weight),
			RequestHeadersToAdd: bounded(o.requestAdd), RequestHeadersToRemove: o.requestRemove,
			ResponseHeadersToAdd: bounded(o.responseAdd), ResponseHeadersToRemove: o.responseRemove,
		}
		if o.authority != "" {
			c.HostRewriteSpecifier = &routev3.WeightedCluster_ClusterWeight_HostRewriteLiteral{HostRewriteLiteral: o.authority}
		}
		weighted.Clusters = append(weighted.Clusters, c)
		action.HashPolicy = append(action.HashPolicy, s.hashPolicies(d.GetDestination())...)
	}
	action.ClusterSpecifier = &routev3.RouteAction_WeightedClusters{WeightedClusters: weighted}
	return total > 0
}

// DefaultRoute sends everything to a cluster, as is done with the requests to a
// service that no VirtualService is about. The hash is that of the service, or
// nil.
func (s *RouteScope) DefaultRoute(cluster string, hash *networking.LoadBalancerSettings_ConsistentHashLB) *routev3.Route {
	action := &routev3.RouteAction{
		ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: cluster},
		RetryPolicy:      s.retryPolicy(nil),
		HashPolicy:       usableHash(hash),
		Timeout:          durationpb.New(0),
	}
	if s.Client != ForGRPC {
		action.MaxStreamDuration = deadlinesOfCalls()
	}
	return &routev3.Route{Name: "default", Match: everyPath(), Action: &routev3.Route_Route{Route: action}}
}
