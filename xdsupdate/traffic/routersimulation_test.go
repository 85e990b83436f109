// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/pilotkit/pilotkit/internal/test/routesim"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/route"
)

// router returns the router of a simulated proxy.
func (s *scene) router(kind route.Kind, p routesim.Proxy) *route.Router {
	return s.policies.Router(kind, &registry.Proxy{Namespace: p.Namespace, Labels: p.Labels})
}

// routerRequest returns a simulated request for a router.
func routerRequest(r routesim.Request) route.Request {
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

// differs compares what a router does with a request, for each of its destinations, with an outcome;
// "" if it is the same.
func differs(router *route.Router, r routesim.Request, want routesim.Outcome) string {
	q := routerRequest(r)
	_, query, _ := strings.Cut(q.Path, "?")
	d := router.Route(q)
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
	several := map[string]bool{}
	for _, to := range d.Rule.Destinations {
		one := router.Route(q)
		if one.Destination.Cluster == to.Cluster {
			several[to.Cluster] = got.Targets[to.Cluster] > 0
			if problem := destinationDiffers(one, query, want, several[to.Cluster]); problem != "" {
				return problem
			}
		} else {
			return fmt.Sprintf("the random number %d leads to %s, not %s", q.Random, one.Destination.Cluster, to.Cluster)
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

// destinationDiffers compares the request that goes to one destination. Again is set if another
// destination of the rule has the same cluster, so that the outcome does not tell its headers.
func destinationDiffers(d route.Decision, query string, want routesim.Outcome, again bool) string {
	path, kept, _ := strings.Cut(d.Path, "?")
	if path != want.Path || kept != query || !again && len(want.Targets) > 0 && d.Authority != want.HostOf(d.Destination.Cluster) {
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
	if fmt.Sprint(got) != fmt.Sprint(all) && !again && len(d.Rule.Destinations) == len(want.Targets) {
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

// checkRouter fails the test if a router does something else with a request.
func checkRouter(t *testing.T, router *route.Router, r routesim.Request, want routesim.Outcome, about func() string) {
	t.Helper()
	if problem := differs(router, r, want); problem != "" {
		t.Fatalf("router, request %+v:\n got %s\nwant %s\n%s", r, problem, want, about())
	}
}
