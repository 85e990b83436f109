// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"github.com/google/go-cmp/cmp"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// failures records what an observer is told of.
type failures struct {
	ads.NoObserver
	mu   sync.Mutex
	list []error
}

// Failed implements ads.Observer.
func (f *failures) Failed(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = append(f.list, err)
}

func (f *failures) all() []error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.list)
}

func (f *failures) count() int { return len(f.all()) }

// leftOut returns the objects and fields that were left out, each once, sorted.
func (f *failures) leftOut() []string {
	var out []string
	for _, err := range f.all() {
		for text := range strings.SplitSeq(err.Error(), "\n") {
			out = append(out, text[max(0, strings.Index(text, "provider traffic: ")):])
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

const (
	brokenRewrite = `{"hosts": ["evil.example.com"], "gateways": ["mesh", "edge"], "http": [
		{"match": [{"uri": {"prefix": "/a"}}], "rewrite": {"uri": "/x\ny"}, "route": [{"destination": {"host": "evil.example.com", "port": {"number": 80}}}]},
		{"match": [{"uri": {"prefix": "/b"}}], "route": [{"destination": {"host": "evil.example.com", "port": {"number": 80}}}]}],
		"tls": [{"match": [{"sniHosts": ["evil.example.com"]}], "route": [{"destination": {"host": "evil.example.com", "port": {"number": 9000}}}]}]}`
	brokenRule = `{"host": "evil.example.com", "trafficPolicy": {"connectionPool": {"tcp": {"maxConnectionDuration": "0.0001s"}}, "loadBalancer": {"consistentHash": {"httpHeaderName": "a\nb"}}},
		"subsets": [{"name": "v1", "trafficPolicy": {"tls": {"mode": "SIMPLE", "sni": "`
)

// ofRequests are the fields of the tenant's good policy that no TCP connection can have: its
// Gateway serves such too.
var ofRequests = []string{"AuthorizationPolicy evil/edge: spec.rules[0].to[0].operation.paths", "AuthorizationPolicy evil/edge: spec.rules[0].when[0].values"}

// TestLeftOutIsReported poisons HTTP and TLS rules, a policy and a subset. What is left out is
// listed by Ineffective, and reported to the observer once, however often other objects
// change; the requests of the rule are answered with 500; nothing is reported any more
// when the object is good again.
func TestLeftOutIsReported(t *testing.T) {
	seen := &failures{}
	w := startTown(t, configsOf(t, neighbour, 1), ads.Options{Observer: seen})
	w.set(configsOf(t, culprit, 1)...)
	w.applied()
	if diff := cmp.Diff(ofRequests, append(w.ineffective(culprit), seen.leftOut()...)); diff != "" {
		t.Fatalf("before (-want +got):\n%s", diff)
	}
	tooLong := brokenRule + strings.Repeat("x", 300) + `"}}}]}`
	broken := []configstore.Config{
		tenantConfig(t, istio.VirtualService, "edge", brokenRewrite, culprit, 1),
		tenantConfig(t, istio.DestinationRule, "edge", tooLong, culprit, 1),
	}
	w.set(broken...)
	w.applied()
	want := []string{"DestinationRule evil/edge: spec.subsets[0]", "DestinationRule evil/edge: spec.trafficPolicy", "VirtualService evil/edge: spec.http[0]", "VirtualService evil/edge: spec.tls[0]"}
	if diff := cmp.Diff(slices.Concat(ofRequests, want), w.ineffective(culprit)); diff != "" {
		t.Errorf("ineffective (-want +got):\n%s", diff)
	}
	// What a push has to report is reported when the next one begins.
	w.set(configsOf(t, neighbour, 2)...)
	w.applied()
	first := seen.count()
	for _, object := range want {
		if !slices.ContainsFunc(seen.leftOut(), func(s string) bool { return strings.Contains(s, object) }) {
			t.Errorf("%s is not reported: %q", object, seen.leftOut())
		}
	}
	var part *traffic.LeftOutError
	if err := errors.Join(seen.all()...); !errors.As(err, &part) || part.Namespace != culprit {
		t.Errorf("no LeftOutError in %v", err)
	}
	for moment := range 4 {
		w.set(configsOf(t, neighbour, moment+3)...)
		w.applied()
		if moment%2 == 1 {
			runtime.GC() // of equal states of a resource only the one that clients have is kept
		}
	}
	if again := seen.count() - first; again > 0 {
		t.Errorf("%d reports again: %v", again, seen.all()[first:])
	}
	w.checkFailing("/a")
	w.set(configsOf(t, culprit, 1)...)
	w.applied()
	if diff := cmp.Diff(ofRequests, w.ineffective(culprit)); diff != "" || seen.count() > first {
		t.Errorf("after: %d more reports (-want +got):\n%s", seen.count()-first, diff)
	}
}

// ineffective returns "Kind namespace/name: field" of what policies find of a tenant.
func (w *town) ineffective(tenant string) []string {
	var out []string
	for _, e := range w.policies.Ineffective() {
		if e.Namespace == tenant && e.Kind != istio.Sidecar {
			out = append(out, strings.TrimSuffix(e.String(), ": "+e.Reason))
		}
	}
	slices.Sort(out)
	return out
}

// checkFailing checks that the router answers requests of the culprit to a path with
// 500, and others as before.
func (w *town) checkFailing(path string) {
	w.t.Helper()
	m, err := w.clients["router"].State().Resources(envoy.RouteType)["http.80"].Message()
	w.must(err)
	for _, h := range m.(*routev3.RouteConfiguration).GetVirtualHosts() {
		if !strings.Contains(h.GetName(), culprit) {
			continue
		}
		for i, want := range []uint32{500, 0} {
			if got := h.GetRoutes()[i].GetDirectResponse().GetStatus(); got != want {
				w.t.Errorf("route %d of %s answers %d, want %d", i, path, got, want)
			}
		}
	}
}
