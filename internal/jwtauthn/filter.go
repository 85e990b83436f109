// SPDX-License-Identifier: Apache-2.0

package jwtauthn

import (
	"fmt"
	"slices"
	"strings"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	jwt "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/jwt_authn/v3"
	"google.golang.org/protobuf/types/known/emptypb"
	security "istio.io/api/security/v1beta1"
)

const (
	// Filter is the name of the filter.
	Filter = "envoy.filters.http.jwt_authn"
	// Payload is the key of the filter's metadata below which it stores the claims.
	Payload = "payload"
)

// Rule is a rule of a RequestAuthentication.
type Rule struct {
	Spec *security.JWTRule
	// Keys is the JSON Web Key Set that verifies the tokens of the issuer. If empty, no token is
	// valid.
	Keys string
}

// Config returns the configuration of the filter for the rules of all objects of a router, or nil
// without rules. It sorts the rules by issuer; rules of one issuer stay in order.
func Config(rules []Rule) *jwt.JwtAuthentication {
	if len(rules) == 0 {
		return nil
	}
	rules = slices.Clone(rules)
	slices.SortStableFunc(rules, func(a, b Rule) int { return strings.Compare(a.Spec.GetIssuer(), b.Spec.GetIssuer()) })
	out := &jwt.JwtAuthentication{Providers: make(map[string]*jwt.JwtProvider, len(rules)), BypassCorsPreflight: true}
	names := make([]string, 0, len(rules))
	for i, r := range rules {
		names = append(names, providerName(i))
		out.Providers[names[i]] = Provider(r)
	}
	out.Rules = []*jwt.RequirementRule{{
		Match:           &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/"}},
		RequirementType: &jwt.RequirementRule_Requires{Requires: requirement(names)},
	}}
	return out
}

func providerName(i int) string { return fmt.Sprintf("origins-%d", i) }

// Provider returns the provider that verifies the tokens of a rule.
func Provider(r Rule) *jwt.JwtProvider {
	keys := r.Keys
	if keys == "" {
		keys = NobodysKeys
	}
	out := &jwt.JwtProvider{
		Issuer: r.Spec.GetIssuer(), Audiences: r.Spec.GetAudiences(),
		JwksSourceSpecifier: &jwt.JwtProvider_LocalJwks{LocalJwks: &core.DataSource{
			Specifier: &core.DataSource_InlineString{InlineString: keys},
		}},
		FromParams: r.Spec.GetFromParams(), FromCookies: r.Spec.GetFromCookies(),
		Forward: r.Spec.GetForwardOriginalToken(), ForwardPayloadHeader: r.Spec.GetOutputPayloadToHeader(),
		PayloadInMetadata: Payload,
		// Routes match claims, and a route is chosen before the token is verified.
		ClearRouteCache: true,
		NormalizePayloadInMetadata: &jwt.JwtProvider_NormalizePayload{
			SpaceDelimitedClaims: spaceDelimited(r.Spec.GetSpaceDelimitedClaims()),
		},
	}
	for _, h := range r.Spec.GetFromHeaders() {
		out.FromHeaders = append(out.FromHeaders, &jwt.JwtHeader{Name: h.GetName(), ValuePrefix: h.GetPrefix()})
	}
	for _, c := range r.Spec.GetOutputClaimToHeaders() {
		out.ClaimToHeaders = append(out.ClaimToHeaders, &jwt.JwtClaimToHeader{HeaderName: c.GetHeader(), ClaimName: c.GetClaim()})
	}
	return out
}

// spaceDelimited returns the claims whose text is a list of words. permission and scope are always
// included (S75).
func spaceDelimited(more []string) []string {
	out := append([]string{"permission", "scope"}, more...)
	slices.Sort(out)
	return slices.Compact(out)
}

// requirement accepts a request with a valid token, or without a token. Of several providers one
// must accept, so that a valid token and an invalid one may be present together (S70).
func requirement(providers []string) *jwt.JwtRequirement {
	each := make([]*jwt.JwtRequirement, 0, len(providers))
	valid := make([]*jwt.JwtRequirement, 0, len(providers)+1)
	for _, name := range providers {
		valid = append(valid, provider(name))
		each = append(each, anyOf(provider(name), missing()))
	}
	if len(each) == 1 {
		return each[0]
	}
	return anyOf(append(valid, &jwt.JwtRequirement{RequiresType: &jwt.JwtRequirement_RequiresAll{
		RequiresAll: &jwt.JwtRequirementAndList{Requirements: each},
	}})...)
}

func provider(name string) *jwt.JwtRequirement {
	return &jwt.JwtRequirement{RequiresType: &jwt.JwtRequirement_ProviderName{ProviderName: name}}
}

func missing() *jwt.JwtRequirement {
	return &jwt.JwtRequirement{RequiresType: &jwt.JwtRequirement_AllowMissing{AllowMissing: &emptypb.Empty{}}}
}

func anyOf(list ...*jwt.JwtRequirement) *jwt.JwtRequirement {
	return &jwt.JwtRequirement{RequiresType: &jwt.JwtRequirement_RequiresAny{
		RequiresAny: &jwt.JwtRequirementOrList{Requirements: list},
	}}
}
