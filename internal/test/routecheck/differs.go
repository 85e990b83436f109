// SPDX-License-Identifier: Apache-2.0

// Package routecheck compares the decisions of package route with the outcomes that package routesim
// predicts, for calls that it derives from the resources of a proxy. It is for tests only.
//
// The recorded scenarios of internal/test/conformance/traffic and configstore/kube/gatewayapi are
// compared after each step, without exceptions. These parts of decisions are not compared:
//
//   - Sidecars: the listeners, because the host makes them. The route configurations are compared.
//   - Plain HTTP: connections with a TLS handshake. A host closes them (Router.Handshake).
//   - gRPC clients: retries, mirrors and changes of headers.
//   - Tokens: 401 or 403 for a refused token, which TestRouterIsEnvoy of xdsupdate/traffic compares,
//     and headers for claims other than texts, whose encoding by Envoy is not documented.
package routecheck

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/pilotkit/pilotkit/internal/test/routesim"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/route"
)

// Request returns a simulated request for a router.
func Request(r routesim.Request) route.Request {
	out := route.Request{
		Port: r.Port, TLS: r.TLS, Method: r.Method, Scheme: r.Scheme, Authority: r.Authority, Path: r.Path, Headers: http.Header{},
	}
	for i, name := range slices.Sorted(maps.Keys(r.Query)) {
		out.Path += map[bool]string{true: "?", false: "&"}[i == 0] + name + "=" + r.Query[name]
	}
	for name, value := range r.Headers {
		out.Headers.Set(name, value)
	}
	return out
}

// Differs compares the handling of a request by a router, for each of its destinations, with an outcome;
// "" if it is the same.
func Differs(router func(route.Request) route.Decision, q route.Request, want routesim.Outcome) string {
	_, query, _ := strings.Cut(q.Path, "?")
	d := router(q)
	got := routesim.Outcome{}
	if d.Destination == nil {
		got.Status, got.Body = uint32(d.Status), string(d.Body) //nolint:gosec // a status
		var kept string
		if got.Location, kept, _ = strings.Cut(d.Location, "?"); d.Location != "" && kept != query {
			return fmt.Sprintf("the query %q of the location became %q", query, kept)
		}
		got.Headers = changesText(d)
		slices.Sort(got.Headers)
		want.Headers = slices.DeleteFunc(slices.Clone(want.Headers), func(h string) bool { return !strings.HasPrefix(h, "response ") }) // nobody gets the request
		if got.String() != want.String() {
			return fmt.Sprintf("%s (%s)", got, d.Reason)
		}
		return ""
	}
	got.Targets, got.Timeout, got.Fault = map[string]uint32{}, d.Rule.Timeout, faultText(d.Rule.Fault)
	if x := d.Rule.Retries; x != nil {
		got.Retries, got.RetryOn = x.Attempts, fmt.Sprint(x.On, x.Statuses)
	}
	for _, m := range d.Rule.Mirrors {
		if got.Mirrors == nil {
			got.Mirrors = map[string]uint32{}
		}
		got.Mirrors[m.Cluster] += m.Share
	}
	times := map[string]int{}
	for _, to := range d.Rule.Destinations {
		times[to.Cluster]++
	}
	for _, to := range d.Rule.Destinations {
		one := router(q)
		if one.Destination.Cluster != to.Cluster {
			return fmt.Sprintf("the random number %d leads to %s, not %s", q.Random, one.Destination.Cluster, to.Cluster)
		}
		if problem := destinationDiffers(one, query, want, times[to.Cluster] > 1); problem != "" {
			return problem
		}
		got.Targets[to.Cluster] += max(1, to.Weight)
		q.Random += uint64(max(1, to.Weight))
	}
	got.Path, got.Host, got.Hosts, got.Headers = want.Path, want.Host, want.Hosts, want.Headers // compared above
	if got.String() != want.String() {
		return got.String()
	}
	return ""
}

// destinationDiffers compares the request that goes to one destination. Several is set if another
// destination of the rule has the same cluster, so that the outcome does not tell its headers.
func destinationDiffers(d route.Decision, query string, want routesim.Outcome, several bool) string {
	path, kept, _ := strings.Cut(d.Path, "?")
	if path != want.Path || kept != query || !several && len(want.Targets) > 0 && d.Authority != want.HostOf(d.Destination.Cluster) {
		return fmt.Sprintf("to %s as %s%s", d.Destination.Cluster, d.Authority, d.Path)
	}
	got, all := changesText(d), []string{}
	for _, h := range want.Headers {
		if own, ok := strings.CutPrefix(h, d.Destination.Cluster+" "); ok {
			all = append(all, own)
		} else if strings.HasPrefix(h, "request ") || strings.HasPrefix(h, "response ") {
			all = append(all, h)
		}
	}
	slices.Sort(got)
	slices.Sort(all)
	if fmt.Sprint(got) != fmt.Sprint(all) && !several && len(d.Rule.Destinations) == len(want.Targets) {
		return fmt.Sprintf("headers of %s: %q, not %q", d.Destination.Cluster, got, all)
	}
	return ""
}

func changesText(d route.Decision) (out []string) {
	add := func(what string, list []route.HeaderChange) {
		for _, c := range list {
			switch name := strings.ToLower(c.Name); c.Operation {
			case route.Remove:
				out = append(out, what+"remove "+name)
			case route.Add:
				out = append(out, what+"add "+name+"="+c.Value)
			default:
				out = append(out, what+"set "+name+"="+c.Value)
			}
		}
	}
	add("request ", d.Request)
	add("response ", d.Response)
	return out
}

func faultText(f *route.Fault) (out string) {
	if f == nil {
		return ""
	}
	if f.Delay > 0 {
		out += fmt.Sprintf("delay %s for %d ", f.Delay, f.DelayShare)
	}
	if f.AbortStatus+f.AbortGRPC > 0 {
		out += fmt.Sprintf("abort http %d grpc %d for %d ", f.AbortStatus, f.AbortGRPC, f.AbortShare)
	}
	return out
}
