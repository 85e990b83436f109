// SPDX-License-Identifier: Apache-2.0

package xdsbuild

import (
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// hashPolicies returns the properties of a request whose hash selects the endpoint. The key of a
// consistent hash belongs to routes, while the algorithm belongs to clusters. The result is nil
// without a key, and for nil.
func hashPolicies(hash *networking.LoadBalancerSettings_ConsistentHashLB) []*routev3.RouteAction_HashPolicy {
	if hash == nil {
		return nil
	}
	out := &routev3.RouteAction_HashPolicy{}
	switch key := hash.GetHashKey().(type) {
	case *networking.LoadBalancerSettings_ConsistentHashLB_HttpHeaderName:
		if key.HttpHeaderName == "" {
			return nil
		}
		out.PolicySpecifier = &routev3.RouteAction_HashPolicy_Header_{
			Header: &routev3.RouteAction_HashPolicy_Header{HeaderName: key.HttpHeaderName},
		}
	case *networking.LoadBalancerSettings_ConsistentHashLB_HttpCookie:
		if key.HttpCookie.GetName() == "" {
			return nil
		}
		out.PolicySpecifier = &routev3.RouteAction_HashPolicy_Cookie_{Cookie: hashCookie(key.HttpCookie)}
	case *networking.LoadBalancerSettings_ConsistentHashLB_UseSourceIp:
		if !key.UseSourceIp {
			return nil
		}
		out.PolicySpecifier = &routev3.RouteAction_HashPolicy_ConnectionProperties_{
			ConnectionProperties: &routev3.RouteAction_HashPolicy_ConnectionProperties{SourceIp: true},
		}
	case *networking.LoadBalancerSettings_ConsistentHashLB_HttpQueryParameterName:
		if key.HttpQueryParameterName == "" {
			return nil
		}
		out.PolicySpecifier = &routev3.RouteAction_HashPolicy_QueryParameter_{
			QueryParameter: &routev3.RouteAction_HashPolicy_QueryParameter{Name: key.HttpQueryParameterName},
		}
	default:
		return nil
	}
	return []*routev3.RouteAction_HashPolicy{out}
}

// CheckHash returns an error if clients would reject a route with this hash, nil for a nil hash.
func CheckHash(hash *networking.LoadBalancerSettings_ConsistentHashLB) error {
	for _, h := range hashPolicies(hash) {
		if err := Check(envoy.ForEnvoy, h); err != nil {
			return err
		}
	}
	return nil
}

// usableHash returns the policies of a hash, none if clients would reject it.
func usableHash(hash *networking.LoadBalancerSettings_ConsistentHashLB) []*routev3.RouteAction_HashPolicy {
	if CheckHash(hash) != nil {
		return nil
	}
	return hashPolicies(hash)
}

func hashCookie(c *networking.LoadBalancerSettings_ConsistentHashLB_HTTPCookie) *routev3.RouteAction_HashPolicy_Cookie {
	out := &routev3.RouteAction_HashPolicy_Cookie{Name: c.GetName(), Path: c.GetPath()}
	if c.GetTtl() != nil {
		out.Ttl = duration(c.GetTtl())
	}
	for _, a := range c.GetAttributes() {
		out.Attributes = append(out.Attributes, &routev3.RouteAction_HashPolicy_CookieAttribute{Name: a.GetName(), Value: a.GetValue()})
	}
	return out
}
