// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	networking "istio.io/api/networking/v1alpha3"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// convertGRPCRoute converts the rules of a GRPCRoute.
func (r *resolver) convertGRPCRoute(o *gatewayv1.GRPCRoute) *rules {
	out := &rules{total: len(o.Spec.Rules)}
	for i := range o.Spec.Rules {
		spec := &o.Spec.Rules[i]
		matches, err := grpcMatches(spec.Matches)
		if err != nil {
			out.drop(i, err.Error())
			continue
		}
		action, wrong := r.grpcAction(spec)
		r.addRule(out, keyOf(o), i, rule{spec.Name, matches, action}, wrong)
	}
	out.unresolved = r.unresolved
	return out
}

func grpcMatches(list []gatewayv1.GRPCRouteMatch) ([]*networking.HTTPMatchRequest, error) {
	var out []*networking.HTTPMatchRequest
	for i := range list {
		match, err := grpcMatch(&list[i])
		if err != nil {
			return nil, err
		}
		out = append(out, match)
	}
	return out, nil
}

func (r *resolver) grpcAction(spec *gatewayv1.GRPCRouteRule) (*networking.HTTPRoute, problem) {
	out := &networking.HTTPRoute{}
	filters := httpFilters(spec.Filters)
	for i := range filters {
		if wrong := r.addFilter(out, &filters[i]); wrong.is() {
			return nil, wrong
		}
	}
	backends := weighted(spec.BackendRefs, func(b *gatewayv1.GRPCBackendRef) *int32 { return b.Weight })
	if len(backends) == 0 {
		out.DirectResponse = &networking.HTTPDirectResponse{Status: failed}
		return out, problem{}
	}
	for _, b := range backends {
		headers, wrong := backendHeaders(httpFilters(b.Filters))
		if wrong.is() {
			return nil, wrong
		}
		to, wrong := r.destination(&b.BackendObjectReference)
		r.note(wrong)
		out.Route = append(out.Route, &networking.HTTPRouteDestination{
			Destination: to, Weight: share(b.Weight, len(backends)), Headers: headers,
		})
	}
	return out, problem{}
}

// httpFilters converts the filters of a GRPCRoute, whose types are a subset of an HTTPRoute's.
func httpFilters(list []gatewayv1.GRPCRouteFilter) []gatewayv1.HTTPRouteFilter {
	var out []gatewayv1.HTTPRouteFilter
	for _, f := range list {
		out = append(out, gatewayv1.HTTPRouteFilter{
			Type: gatewayv1.HTTPRouteFilterType(f.Type), RequestHeaderModifier: f.RequestHeaderModifier,
			ResponseHeaderModifier: f.ResponseHeaderModifier, RequestMirror: f.RequestMirror, ExtensionRef: f.ExtensionRef,
		})
	}
	return out
}
