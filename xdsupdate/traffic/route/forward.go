// SPDX-License-Identifier: Apache-2.0

package route

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	cors "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/cors/v3"
	fault "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/fault/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
)

// forward compiles an action that forwards requests.
func (b *routeBuilder) forward(a *routev3.RouteAction) (func(*call, *Decision), error) {
	path, err := b.newPath(a.GetPrefixRewrite(), a.GetRegexRewrite())
	if err = errors.Join(err, b.setDestinations(a), b.setFilters()); err != nil {
		return nil, err
	}
	if a.GetHostRewriteSpecifier() != nil && a.GetHostRewriteLiteral() == "" {
		return nil, fmt.Errorf("a rewrite of the host of the kind %T", a.GetHostRewriteSpecifier())
	}
	b.setTimes(a)
	b.setRetries(a.GetRetryPolicy())
	for _, m := range a.GetRequestMirrorPolicies() {
		share := uint32(million)
		if f := m.GetRuntimeFraction(); f != nil {
			share = millionths(f.GetDefaultValue())
		}
		b.rule.Mirrors = append(b.rule.Mirrors, Mirror{newDestination(m.GetCluster(), 0), share})
	}
	missing := http.StatusServiceUnavailable
	switch a.GetClusterNotFoundResponseCode() {
	case routev3.RouteAction_NOT_FOUND:
		missing = http.StatusNotFound
	case routev3.RouteAction_INTERNAL_SERVER_ERROR:
		missing = http.StatusInternalServerError
	default:
	}
	rule, host := b.rule, a.GetHostRewriteLiteral()
	rule.missing = missing
	return func(c *call, d *Decision) {
		to := rule.choose(c.Random)
		if to == nil {
			d.answer(NoCluster, missing)
			return
		}
		d.Destination, d.Request, d.Response = to, to.request, to.response
		d.Path, d.Authority = path(c), cmp.Or(host, to.authority, c.Authority)
	}, nil
}

// setDestinations sets the destinations. The changes of headers of a destination come before the
// changes of the route.
func (b *routeBuilder) setDestinations(a *routev3.RouteAction) error {
	switch s := a.GetClusterSpecifier().(type) {
	case *routev3.RouteAction_Cluster:
		b.rule.Destinations = []Destination{newDestination(s.Cluster, 0)}
	case *routev3.RouteAction_WeightedClusters:
		for _, w := range s.WeightedClusters.GetClusters() {
			d := newDestination(w.GetName(), w.GetWeight().GetValue())
			d.authority = w.GetHostRewriteLiteral()
			d.request = headerChanges(w.GetRequestHeadersToAdd(), w.GetRequestHeadersToRemove())
			d.response = headerChanges(w.GetResponseHeadersToAdd(), w.GetResponseHeadersToRemove())
			b.rule.Destinations = append(b.rule.Destinations, d)
		}
	default:
		return fmt.Errorf("a destination of the kind %T", s)
	}
	for i := range b.rule.Destinations {
		d := &b.rule.Destinations[i]
		d.request, d.response = slices.Concat(d.request, b.request), slices.Concat(d.response, b.response)
	}
	return nil
}

func (b *routeBuilder) setTimes(a *routev3.RouteAction) {
	b.rule.Timeout = a.GetTimeout().AsDuration()
	if d := a.GetMaxStreamDuration().GetMaxStreamDuration(); d != nil {
		b.rule.Timeout = d.AsDuration()
	}
	b.rule.DeadlineOfCall = a.GetMaxStreamDuration().GetGrpcTimeoutHeaderMax() != nil
	for _, h := range a.GetHashPolicy() {
		b.rule.Hash = append(b.rule.Hash, newHashPolicy(h))
	}
}

func (b *routeBuilder) setRetries(p *routev3.RetryPolicy) {
	if p == nil {
		return
	}
	b.rule.Retries = &Retries{
		Attempts: p.GetNumRetries().GetValue(), On: p.GetRetryOn(), Statuses: p.GetRetriableStatusCodes(),
		PerTry: p.GetPerTryTimeout().AsDuration(), Backoff: p.GetRetryBackOff().GetBaseInterval().AsDuration(),
		OtherHosts: len(p.GetRetryHostPredicate()) > 0,
	}
}

// setFilters sets the fault and the CORS policy of the route.
func (b *routeBuilder) setFilters() error {
	for name, config := range b.message.GetTypedPerFilterConfig() {
		message, err := config.UnmarshalNew()
		if err != nil {
			return err
		}
		switch m := message.(type) {
		case *fault.HTTPFault:
			b.rule.Fault = newFault(m)
		case *cors.CorsPolicy:
			if b.rule.CORS, err = newCORS(m); err != nil {
				return err
			}
		default:
			return fmt.Errorf("a configuration of the filter %s", name)
		}
	}
	return nil
}

func newFault(m *fault.HTTPFault) *Fault {
	out := &Fault{}
	if d := m.GetDelay(); d != nil {
		out.Delay, out.DelayShare = d.GetFixedDelay().AsDuration(), millionths(d.GetPercentage())
	}
	if a := m.GetAbort(); a != nil {
		out.AbortStatus, out.AbortGRPC, out.AbortShare = a.GetHttpStatus(), a.GetGrpcStatus(), millionths(a.GetPercentage())
	}
	return out
}

const million = 1_000_000

func millionths(p *typev3.FractionalPercent) uint32 {
	switch p.GetDenominator() {
	case typev3.FractionalPercent_HUNDRED:
		return p.GetNumerator() * (million / 100)
	case typev3.FractionalPercent_TEN_THOUSAND:
		return p.GetNumerator() * (million / 10_000)
	default:
		return p.GetNumerator()
	}
}
