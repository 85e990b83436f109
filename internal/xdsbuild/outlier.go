// SPDX-License-Identifier: Apache-2.0

package xdsbuild

import (
	"strconv"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	matcher "github.com/envoyproxy/go-control-plane/envoy/config/common/matcher/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	http "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"
	networking "istio.io/api/networking/v1alpha3"
)

// setOutliers sets outlier detection and the panic threshold, the share of healthy endpoints below
// which Envoy sends to all of them.
func (u *Upstream) setOutliers(c *clusterv3.Cluster) {
	o := u.Policy.GetOutlierDetection()
	if o == nil {
		return
	}
	c.OutlierDetection = outlierDetection(o)
	c.CommonLbConfig.HealthyPanicThreshold = boundedPercent(float64(o.GetMinHealthPercent()))
}

func outlierDetection(o *networking.OutlierDetection) *clusterv3.OutlierDetection {
	out := &clusterv3.OutlierDetection{
		Interval:         positive(o.GetInterval()),
		BaseEjectionTime: positive(o.GetBaseEjectionTime()),
		// The policy did not ask for Envoy's default ejection by success rate.
		EnforcingSuccessRate: wrapperspb.UInt32(0),
	}
	if n := o.GetConsecutive_5XxErrors(); n != nil {
		out.Consecutive_5Xx, out.EnforcingConsecutive_5Xx = wrapperspb.UInt32(n.GetValue()), enforced(n)
	}
	if n := o.GetConsecutiveGatewayErrors(); n != nil {
		out.ConsecutiveGatewayFailure, out.EnforcingConsecutiveGatewayFailure = wrapperspb.UInt32(n.GetValue()), enforced(n)
	}
	if p := o.GetMaxEjectionPercent(); p > 0 {
		out.MaxEjectionPercent = unsigned(min(100, p))
	}
	if o.GetSplitExternalLocalOriginErrors() {
		out.SplitExternalLocalOriginErrors = true
		out.EnforcingLocalOriginSuccessRate = wrapperspb.UInt32(0)
		if n := o.GetConsecutiveLocalOriginFailures(); n.GetValue() > 0 {
			out.ConsecutiveLocalOriginFailure, out.EnforcingConsecutiveLocalOriginFailure = wrapperspb.UInt32(n.GetValue()), enforced(n)
		}
	}
	return out
}

// outliersForGRPC returns outlier detection for gRPC clients, which do not support consecutive
// errors (gRFC A50). An endpoint is ejected if all calls of an interval fail, and if these are at
// least as many as the policy's number of errors. The result is nil for a policy without a number
// of errors.
func outliersForGRPC(o *networking.OutlierDetection) *clusterv3.OutlierDetection {
	errors := o.GetConsecutive_5XxErrors().GetValue()
	if n := o.GetConsecutiveGatewayErrors().GetValue(); n > 0 && (errors == 0 || n < errors) {
		errors = n
	}
	if errors == 0 {
		return nil
	}
	out := &clusterv3.OutlierDetection{
		Interval:                       positive(o.GetInterval()),
		BaseEjectionTime:               positive(o.GetBaseEjectionTime()),
		EnforcingSuccessRate:           wrapperspb.UInt32(0),
		EnforcingFailurePercentage:     wrapperspb.UInt32(100),
		FailurePercentageThreshold:     wrapperspb.UInt32(99), // ejects above this percentage
		FailurePercentageMinimumHosts:  wrapperspb.UInt32(1),
		FailurePercentageRequestVolume: wrapperspb.UInt32(errors),
	}
	if p := o.GetMaxEjectionPercent(); p > 0 {
		out.MaxEjectionPercent = unsigned(min(100, p))
	}
	return out
}

// enforced returns the enforcing percentage of a detector with a number of errors: 0, which
// disables the detector, without such a number, 100 otherwise.
func enforced(n *wrapperspb.UInt32Value) *wrapperspb.UInt32Value {
	if n.GetValue() == 0 {
		return wrapperspb.UInt32(0)
	}
	return wrapperspb.UInt32(100)
}

// errorMatcher returns the responses that count as errors, nil for all 5xx.
func errorMatcher(o *networking.OutlierDetection) *http.HttpProtocolOptions_OutlierDetection {
	var rules []*matcher.MatchPredicate
	for _, code := range o.GetOutlierDetectionHttpErrorCodes() {
		rules = append(rules, statusMatch(strconv.FormatUint(uint64(code), 10)))
	}
	switch len(rules) {
	case 0:
		return nil
	case 1: // Envoy rejects a set of fewer than two rules
		return &http.HttpProtocolOptions_OutlierDetection{ErrorMatcher: rules[0]}
	default:
		return &http.HttpProtocolOptions_OutlierDetection{ErrorMatcher: &matcher.MatchPredicate{
			Rule: &matcher.MatchPredicate_OrMatch{OrMatch: &matcher.MatchPredicate_MatchSet{Rules: rules}},
		}}
	}
}

func statusMatch(status string) *matcher.MatchPredicate {
	return &matcher.MatchPredicate{Rule: &matcher.MatchPredicate_HttpResponseHeadersMatch{
		HttpResponseHeadersMatch: &matcher.HttpHeadersMatch{Headers: []*routev3.HeaderMatcher{{
			Name: ":status",
			HeaderMatchSpecifier: &routev3.HeaderMatcher_StringMatch{StringMatch: &matcherv3.StringMatcher{
				MatchPattern: &matcherv3.StringMatcher_Exact{Exact: status},
			}},
		}}},
	}}
}
