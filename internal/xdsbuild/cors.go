// SPDX-License-Identifier: Apache-2.0

package xdsbuild

import (
	"strconv"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	cors "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/cors/v3"
	matcher "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	networking "istio.io/api/networking/v1alpha3"
)

// corsPolicy returns the configuration of the CORS filter; nil stays nil.
func corsPolicy(c *networking.CorsPolicy) *anypb.Any {
	if c == nil {
		return nil
	}
	out := &cors.CorsPolicy{
		AllowMethods:  strings.Join(c.GetAllowMethods(), ","),
		AllowHeaders:  strings.Join(c.GetAllowHeaders(), ","),
		ExposeHeaders: strings.Join(c.GetExposeHeaders(), ","),
		FilterEnabled: &corev3.RuntimeFractionalPercent{DefaultValue: &typev3.FractionalPercent{Numerator: 100}},
		ForwardNotMatchingPreflights: wrapperspb.Bool(
			c.GetUnmatchedPreflights() != networking.CorsPolicy_IGNORE),
	}
	for _, o := range c.GetAllowOrigins() {
		if s := stringMatcher(o); s != nil {
			out.AllowOriginStringMatch = append(out.AllowOriginStringMatch, s)
		}
	}
	if len(c.GetAllowOrigins()) == 0 {
		for _, o := range c.GetAllowOrigin() { //nolint:staticcheck // Users still write it.
			out.AllowOriginStringMatch = append(out.AllowOriginStringMatch,
				&matcher.StringMatcher{MatchPattern: &matcher.StringMatcher_Exact{Exact: o}})
		}
	}
	if c.GetMaxAge() != nil {
		out.MaxAge = strconv.FormatInt(int64(c.GetMaxAge().AsDuration().Seconds()), 10)
	}
	if c.GetAllowCredentials() != nil {
		out.AllowCredentials = wrapperspb.Bool(c.GetAllowCredentials().GetValue())
	}
	return packed(out)
}
