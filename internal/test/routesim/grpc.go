// SPDX-License-Identifier: Apache-2.0

package routesim

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	httpfault "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/fault/v3"
	"google.golang.org/grpc/codes"
)

// GRPCClient is one of the gRPC clients, which read the same routes differently. Their behaviour
// was observed by running them (grpc-go 1.84, grpc-js-xds 1.14, C-core 1.51).
type GRPCClient int

// The clients.
const (
	Go GRPCClient = iota
	JS
	Core
)

// Call returns the outcome of a call with the authority of the request as its target, or the
// client's error if it rejects the whole route configuration.
func (c GRPCClient) Call(config *routev3.RouteConfiguration, r Request) (Outcome, error) {
	for _, vh := range config.GetVirtualHosts() {
		if c == Core && len(vh.GetRoutes()) == 0 {
			return Outcome{}, errors.New("a virtual host without routes is refused by C-core")
		}
		for _, route := range vh.GetRoutes() {
			if err := c.refuses(route); err != nil {
				return Outcome{}, err
			}
		}
	}
	for _, route := range virtualHost(config, strings.ToLower(r.Authority)).GetRoutes() {
		if c.matches(route.GetMatch(), r) {
			return called(route, r), nil
		}
	}
	return NoRoute(), nil
}

func (c GRPCClient) refuses(route *routev3.Route) error {
	if c == JS && (route.GetRedirect() != nil || route.GetDirectResponse() != nil) {
		return errors.New("grpc-js refuses redirects and direct responses")
	}
	if route.GetMatch().GetPathSeparatedPrefix() != "" {
		return errors.New("path_separated_prefix is refused by all")
	}
	for _, h := range route.GetMatch().GetHeaders() {
		if c == Core && h.GetStringMatch() != nil {
			return errors.New("string_match is refused by C-core")
		}
	}
	for name, config := range route.GetTypedPerFilterConfig() {
		var f httpfault.HTTPFault
		if err := config.UnmarshalTo(&f); err != nil {
			return fmt.Errorf("configuration of %s: %w", name, err)
		}
		if c == JS && (f.GetDelay() != nil && f.GetDelay().GetPercentage() == nil || f.GetAbort() != nil && f.GetAbort().GetPercentage() == nil) {
			return errors.New("grpc-js refuses faults without a percentage")
		}
	}
	if w := route.GetRoute().GetWeightedClusters(); w != nil {
		sum, want := uint32(0), uint32(100)
		for _, one := range w.GetClusters() {
			sum += one.GetWeight().GetValue()
		}
		if total := w.GetTotalWeight(); total != nil { //nolint:staticcheck // C-core looks at it.
			want = total.GetValue()
		}
		if c == Core && sum != want || sum == 0 {
			return fmt.Errorf("weights add up to %d, not %d", sum, want)
		}
	}
	if p := route.GetRoute().GetRetryPolicy(); p != nil && p.GetNumRetries().GetValue() == 0 {
		return errors.New("grpc-go refuses a policy without retries")
	}
	return nil
}

func (c GRPCClient) matches(m *routev3.RouteMatch, r Request) bool {
	if len(m.GetQueryParameters()) > 0 && c != JS {
		return false
	}
	fold := m.GetCaseSensitive() != nil && !m.GetCaseSensitive().GetValue()
	if !pathMatches(m, r.Path, fold) {
		return false
	}
	return !slices.ContainsFunc(m.GetHeaders(), func(h *routev3.HeaderMatcher) bool { return !c.headerMatches(h, r) })
}

// headerMatches: no client sees pseudo headers, nor compares names without case.
func (c GRPCClient) headerMatches(h *routev3.HeaderMatcher, r Request) bool {
	value, ok := r.Headers[h.GetName()]
	if p, is := h.GetHeaderMatchSpecifier().(*routev3.HeaderMatcher_PresentMatch); is {
		present := ok == p.PresentMatch
		if c == JS {
			present = ok
		}
		return present != h.GetInvertMatch()
	}
	if !ok {
		return c == JS && h.GetInvertMatch()
	}
	return valueMatches(h, value) != h.GetInvertMatch()
}

// called is the outcome of a call by its route. A redirect or a direct response fails it.
func called(route *routev3.Route, r Request) Outcome {
	var out Outcome
	if route.GetRoute() == nil {
		return Outcome{Fault: "fails"}
	}
	forward(&out, route.GetRoute(), &routev3.RouteMatch{}, r)
	out.Path, out.Host, out.Mirrors, out.Headers = "", "", nil, nil
	var f httpfault.HTTPFault
	if config := route.GetTypedPerFilterConfig()["envoy.filters.http.fault"]; config.UnmarshalTo(&f) == nil {
		out.Fault = injected(route)
		if a := f.GetAbort(); a.GetGrpcStatus() != 0 && millionths(a.GetPercentage()) == 1_000_000 {
			return Outcome{Fault: fmt.Sprintf("fails with %s", codes.Code(a.GetGrpcStatus()))}
		}
	}
	return out
}

// AsCall converts an outcome to that of a gRPC client: without path, host, mirrors and headers, and
// with an error for a response that is not gRPC.
func (o Outcome) AsCall() Outcome {
	if o.Status == NoRoute().Status && o.Body == "" {
		return o
	}
	if o.Status != 0 {
		code := map[uint32]codes.Code{
			400: codes.Internal, 401: codes.Unauthenticated, 403: codes.PermissionDenied, 404: codes.Unimplemented,
			429: codes.Unavailable, 502: codes.Unavailable, 503: codes.Unavailable, 504: codes.Unavailable,
		}[o.Status]
		if code == codes.OK {
			code = codes.Unknown
		}
		return Outcome{Fault: fmt.Sprintf("fails with %s", code)}
	}
	o.Path, o.Host, o.Hosts, o.Mirrors, o.Headers = "", "", nil, nil, nil
	return o
}
