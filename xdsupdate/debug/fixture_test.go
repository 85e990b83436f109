// SPDX-License-Identifier: Apache-2.0

package debug_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/manifest"
	"github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/internal/test/testserver"
	"github.com/pilotkit/pilotkit/registry"
	registrymemory "github.com/pilotkit/pilotkit/registry/memory"
	"github.com/pilotkit/pilotkit/registry/serviceentry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/debug"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// testTimeout bounds waits that succeed at once unless something is broken.
const testTimeout = 2 * time.Minute

// plane is a control plane as a program wires it, with the pages of all of its parts.
type plane struct {
	t          testing.TB
	store      *memory.Controller
	kubernetes *registrymemory.Registry
	registries *aggregate.Controller
	policies   *traffic.Policies
	server     *ads.Server
	conn       *grpc.ClientConn
	pages      http.Handler
	failures
}

// failures is an Observer that reports once that a proxy has rejected a resource, and once that an
// object is left out for a proxy.
type failures struct {
	ads.NoObserver
	refused, quarantined chan struct{}
}

func (f failures) Request(_ ads.Stream, r ads.RequestEvent) {
	if r.Refused {
		once(f.refused)
	}
}

func (f failures) Failed(err error) {
	if fault := (*ads.Fault)(nil); errors.As(err, &fault) && fault.Proxy != "" {
		once(f.quarantined)
	}
}

func once(event chan struct{}) {
	select {
	case event <- struct{}{}:
	default:
	}
}

// waitFor waits for an event.
func (p *plane) waitFor(event chan struct{}) {
	p.t.Helper()
	timeout := time.NewTimer(testTimeout)
	defer timeout.Stop()
	select {
	case <-event:
	case <-timeout.C:
		p.t.Fatal("no proxy refuses anything, or nothing is left out for that")
	}
}

// newPlane starts a control plane. Edit changes what its pages are made with.
func newPlane(tb testing.TB, edit func(*debug.Options)) *plane {
	tb.Helper()
	p := &plane{t: tb, store: memory.NewController(memory.Make(istio.Schemas())), registries: aggregate.NewController()}
	p.failures = failures{refused: make(chan struct{}, 1), quarantined: make(chan struct{}, 1)}
	p.policies = traffic.New(p.store)
	p.server = ads.New(p.registries, ads.Options{
		Debounce: xdsupdate.Debounce{After: -1}, Providers: []ads.Provider{p.policies},
		Observer: p.failures,
	})
	p.registries.AddRegistry(func(updater xdsupdate.XDSUpdater) registry.Instance {
		p.kubernetes = registrymemory.New(registrymemory.Options{Updater: updater, Provider: registry.Kubernetes})
		return p.kubernetes
	})
	p.registries.AddRegistry(func(updater xdsupdate.XDSUpdater) registry.Instance {
		return serviceentry.New(p.store, updater)
	})
	p.serve()
	options := debug.Options{
		Configs: p.store, Services: p.registries, Server: p.server, Policies: p.policies,
		Sources: []configstore.Source{configstore.SourceOf("store", p.store)},
	}
	if edit != nil {
		edit(&options)
	}
	p.pages = debug.New(options)
	return p
}

// serve runs the server until the end of the test.
func (p *plane) serve() {
	p.t.Helper()
	server := grpc.NewServer(ads.ServerOptions()...)
	p.server.Register(server)
	p.conn, _ = testserver.ServeMemory(p.t, server, p.server.Run)
}

func (p *plane) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// apply stores the objects of YAML documents and pushes them. Their default namespace is "shop".
func (p *plane) apply(yaml string) {
	p.t.Helper()
	p.must(manifest.Apply(p.store, []byte(yaml), manifest.Options{DefaultNamespace: "shop"}))
	p.flush()
}

// flush has everything pushed that is stored.
func (p *plane) flush() {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), testTimeout)
	defer cancel()
	p.store.Drain()
	p.kubernetes.Drain()
	p.must(p.server.Flush(ctx))
}

// connect connects an Envoy of a namespace, which subscribes to all clusters and to some route
// configurations, and responds as answer decides. It waits until the Envoy has accepted all of
// them. There must be clusters.
func (p *plane) connect(id, namespace string, answer func(xdstest.Response) error, routes ...string) *xdstest.Client {
	p.t.Helper()
	subscriptions := map[string][]string{envoy.ClusterType: nil}
	if len(routes) > 0 {
		subscriptions[envoy.RouteType] = routes
	}
	return p.connectTo(id, namespace, answer, subscriptions)
}

// connectTo is connect for subscriptions to names by type, nil for all.
func (p *plane) connectTo(
	id, namespace string, answer func(xdstest.Response) error, subscriptions map[string][]string,
) *xdstest.Client {
	p.t.Helper()
	metadata, err := structpb.NewStruct(map[string]any{"NAMESPACE": namespace})
	p.must(err)
	c := xdstest.NewClient(p.conn, xdstest.ClientOptions{
		Node: &core.Node{Id: id, Metadata: metadata}, Answer: answer, NoHistory: true, Delta: true,
	})
	for _, typeURL := range slices.Sorted(maps.Keys(subscriptions)) {
		p.must(c.Subscribe(typeURL, subscriptions[typeURL]...))
	}
	p.must(c.Connect(p.t.Context()))
	p.t.Cleanup(c.Close)
	ctx, cancel := context.WithTimeout(p.t.Context(), testTimeout)
	defer cancel()
	p.must(c.Await(ctx, func(s xdstest.State) bool { // a rejected resource is sent again without the rejected part
		for typeURL, names := range subscriptions {
			if len(s.Resources(typeURL)) == 0 || !s.Has(typeURL, names...) {
				return false
			}
		}
		return true
	}))
	return c
}

// ask asks a handler for a page.
func ask(h http.Handler, target string, headers ...string) *httptest.ResponseRecorder {
	r := request(http.MethodGet, target)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return recorded(h, r)
}

// recorded is the answer to a request.
func recorded(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// request returns a request without a body.
func request(method, target string) *http.Request {
	return httptest.NewRequestWithContext(context.Background(), method, target, http.NoBody)
}

// html returns a page, which has to be there.
func (p *plane) html(target string) string {
	p.t.Helper()
	return htmlOf(p.t, p.pages, target)
}

func htmlOf(tb testing.TB, h http.Handler, target string) string {
	tb.Helper()
	w := ask(h, target)
	if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "text/html; charset=utf-8" {
		tb.Fatalf("%s: %d, %s\n%s", target, w.Code, w.Header(), w.Body)
	}
	return w.Body.String()
}

// json decodes the JSON of a page, which has to be there.
func (p *plane) json(target string, into any) {
	p.t.Helper()
	w := ask(p.pages, target, "Accept", "application/json")
	if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "application/json; charset=utf-8" {
		p.t.Fatalf("%s: %d, %s\n%s", target, w.Code, w.Header(), w.Body)
	}
	if err := json.Unmarshal(w.Body.Bytes(), into); err != nil {
		p.t.Fatalf("%s: %v", target, err)
	}
}

// demand demands that a text has some parts.
func demand(tb testing.TB, about, text string, parts ...string) {
	tb.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			tb.Errorf("%s has no %q:\n%.6000s", about, part, text)
		}
	}
}
