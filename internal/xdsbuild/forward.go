// SPDX-License-Identifier: Apache-2.0

package xdsbuild

import (
	"math"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcher "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// forward makes a route forward requests to the destinations of a rule. The authority is the
// replacement of the request's authority from the header operations of the rule.
func (s *RouteScope) forward(out *routev3.Route, rule *networking.HTTPRoute, authority string) {
	action := &routev3.RouteAction{
		RetryPolicy:           s.retryPolicy(rule.GetRetries()),
		RequestMirrorPolicies: s.mirrors(rule),
	}
	if s.WholeElements && s.Client != envoy.ForGRPC {
		// A missing backend is an error of the route, not of a server.
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

// setTimeout sets the timeout of a request; nil means no timeout. Envoy's default of 15 s would cut
// streams. gRPC clients read the timeout from another field.
//
// Without a timeout, an Envoy ends gRPC calls at the deadline of the client (the header
// grpc-timeout). With a timeout, the deadline is left to the client. An Envoy that honors the
// header ignores the timeout, and the maximum stream duration, which it would apply in addition to
// the header, also ends websockets and uploads.
func (s *RouteScope) setTimeout(action *routev3.RouteAction, timeout *durationpb.Duration) {
	d := duration(timeout)
	if d == nil {
		d = &durationpb.Duration{}
	}
	action.Timeout = d
	switch {
	case s.Client == envoy.ForGRPC:
		action.MaxStreamDuration = &routev3.RouteAction_MaxStreamDuration{MaxStreamDuration: d}
	case d.AsDuration() == 0:
		action.MaxStreamDuration = deadlinesOfCalls()
	}
}

// deadlinesOfCalls makes an Envoy end gRPC calls at the deadline in their header.
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

// forwardToOne forwards all requests to one destination. With a consistent hash, retries do not
// choose another host, because that would defeat the hash.
func (s *RouteScope) forwardToOne(out *routev3.Route, action *routev3.RouteAction, d *networking.HTTPRouteDestination) {
	action.ClusterSpecifier = &routev3.RouteAction_Cluster{Cluster: s.cluster(d.GetDestination())}
	if authority := applyHeaders(out, d.GetHeaders()); authority != "" && action.HostRewriteSpecifier == nil {
		action.HostRewriteSpecifier = &routev3.RouteAction_HostRewriteLiteral{HostRewriteLiteral: authority}
	}
	if action.HashPolicy = s.hashPolicies(d.GetDestination()); len(action.HashPolicy) > 0 && action.RetryPolicy != nil {
		action.RetryPolicy.RetryHostPredicate = nil
	}
}

// forwardToSeveral distributes requests among destinations by their weights. It returns false if no
// destination has a weight.
func (s *RouteScope) forwardToSeveral(action *routev3.RouteAction, destinations []*networking.HTTPRouteDestination) bool {
	weighted := &routev3.WeightedCluster{}
	total := uint64(0)
	for _, d := range destinations {
		weight := uint32(max(d.GetWeight(), 0))
		if total+uint64(weight) > math.MaxUint32 {
			weight = 0 // clients reject larger sums; the validation of rules prevents this
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

// DefaultRoute forwards all requests to a cluster. It is the route of a service without a
// VirtualService. The hash is that of the service, or nil.
func (s *RouteScope) DefaultRoute(cluster string, hash *networking.LoadBalancerSettings_ConsistentHashLB) *routev3.Route {
	action := &routev3.RouteAction{
		ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: cluster},
		RetryPolicy:      s.retryPolicy(nil),
		HashPolicy:       usableHash(hash),
		Timeout:          durationpb.New(0),
	}
	if s.Client != envoy.ForGRPC {
		action.MaxStreamDuration = deadlinesOfCalls()
	}
	return &routev3.Route{Name: "default", Match: everyPath(), Action: &routev3.Route_Route{Route: action}}
}
