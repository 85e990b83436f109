// SPDX-License-Identifier: Apache-2.0

package xdsbuild

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"
	networking "istio.io/api/networking/v1alpha3"
)

// MaxMirrors is the maximum number of copies of a request. Each costs a proxy as much as the
// request.
const MaxMirrors = 10

// mirrors returns the destinations of mirrored requests, at most MaxMirrors. Their responses are
// dropped.
func (s *RouteScope) mirrors(rule *networking.HTTPRoute) []*routev3.RouteAction_RequestMirrorPolicy {
	var out []*routev3.RouteAction_RequestMirrorPolicy
	if rule.GetMirror() != nil {
		share := percentage(rule.GetMirrorPercentage())
		if p := rule.GetMirrorPercent(); share == nil && p != nil { //nolint:staticcheck // Users still write it.
			share = &typev3.FractionalPercent{Numerator: p.GetValue()}
		}
		out = s.appendMirror(out, rule.GetMirror(), share)
	}
	for _, m := range rule.GetMirrors() {
		out = s.appendMirror(out, m.GetDestination(), percentage(m.GetPercentage()))
	}
	return out[:min(len(out), MaxMirrors)]
}

// appendMirror adds a mirror. A nil share means all requests.
func (s *RouteScope) appendMirror(out []*routev3.RouteAction_RequestMirrorPolicy, d *networking.Destination, share *typev3.FractionalPercent) []*routev3.RouteAction_RequestMirrorPolicy {
	if share == nil {
		share = &typev3.FractionalPercent{Numerator: 100}
	}
	if d == nil || share.GetNumerator() == 0 {
		return out
	}
	return append(out, &routev3.RouteAction_RequestMirrorPolicy{
		Cluster:                       s.cluster(d),
		RuntimeFraction:               &corev3.RuntimeFractionalPercent{DefaultValue: share},
		TraceSampled:                  wrapperspb.Bool(false),
		DisableShadowHostSuffixAppend: true,
	})
}

// percentage returns a share in millionths, nil for nil.
func percentage(p *networking.Percent) *typev3.FractionalPercent {
	if p == nil {
		return nil
	}
	return &typev3.FractionalPercent{
		Numerator:   uint32(min(max(p.GetValue(), 0), 100) * 10_000),
		Denominator: typev3.FractionalPercent_MILLION,
	}
}
