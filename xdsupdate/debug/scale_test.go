// SPDX-License-Identifier: Apache-2.0

package debug_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/internal/test/tier"
	"github.com/pilotkit/pilotkit/registry"
	registrymemory "github.com/pilotkit/pilotkit/registry/memory"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// crowd is a control plane with many services, objects and proxies.
func crowd(t *testing.T, services, proxies int) *plane {
	t.Helper()
	p := newPlane(t, nil)
	var all []registrymemory.Definition
	var objects []configstore.Mutation
	for i := range services {
		host := registry.Hostname(fmt.Sprintf("service-%05d.example.com", i))
		all = append(all, registrymemory.Definition{
			Service: &registry.Service{
				Hostname: host, DefaultAddress: registry.UnspecifiedAddress, Ports: []*registry.Port{{Name: "http", Number: 80, Protocol: registry.ProtocolHTTP}},
				Attributes: registry.ServiceAttributes{Name: string(host), Namespace: "shop", Provider: registry.Kubernetes},
			},
			Endpoints: []*registry.Endpoint{{Addresses: []string{fmt.Sprintf("10.1.%d.%d", i/250, i%250)}, EndpointPort: 8080, ServicePortName: "http"}},
		})
		objects = append(objects, configstore.Mutation{Op: configstore.OpCreate, Config: configstore.Config{
			Meta: configstore.Meta{GroupVersionKind: istio.DestinationRule, Namespace: "shop", Name: fmt.Sprintf("rule-%05d", i)},
			Spec: &networking.DestinationRule{Host: fmt.Sprintf("missing-%05d.example.com", i)}, // without effect
		}})
	}
	p.must(p.kubernetes.Replace(all))
	writer, _ := configstore.As[configstore.BatchWriter](p.store)
	_, err := writer.Apply(objects...)
	p.must(err)
	p.flush()
	p.connect("sidecar~10.2.0.1~wildcard.shop~shop.svc", "shop", nil, "80")
	var connecting sync.WaitGroup
	for i := range proxies - 1 {
		if i%50 == 0 {
			connecting.Wait()
		}
		connecting.Go(func() {
			p.connectTo(fmt.Sprintf("sidecar~10.3.%d.%d~web-%04d.shop~shop.svc", i/250, i%250, i), "shop", nil,
				map[string][]string{envoy.ClusterType: {"outbound|80||service-00001.example.com"}})
		})
	}
	connecting.Wait()
	return p
}

// TestLarge: at 10,000 services, as many objects without effect, and 1,000 proxies each answer is
// bounded, and everything can be found.
func TestLarge(t *testing.T) {
	t.Parallel()
	services, proxies := max(2000, tier.Share(10_000)), tier.Share(1000)
	p := crowd(t, services, proxies)
	last := fmt.Sprintf("%05d", services-1)
	for target, parts := range map[string][]string{
		"/":                      {fmt.Sprintf(">%d</span> services", services), fmt.Sprintf(">%d</span> connected proxies", proxies), "missing-00000"[:7]},
		"/services":              {fmt.Sprintf("1–100 of %d", services), "service-00099.", "from=100"},
		"/services?from=" + last: {fmt.Sprintf("%d–%d of %d", services, services, services), "service-" + last},
		"/services?from=999999":  {"Nothing found"},
		"/services?limit=1000":   {"service-00997."},
		"/services?q=" + last:    {"service-" + last, "1–1 of 1 found"},
		"/service?host=service-" + last + ".example.com&namespace=shop": {"8080"},
		"/configs?kind=DestinationRule":                                 {"rule-00099"},
		"/configs?kind=DestinationRule&limit=1000":                      {"rule-00999"},
		"/configs?kind=DestinationRule&problems=1":                      {"among the 2000 that were checked"},
		"/configs?q=rule-" + last:                                       {"rule-" + last},
		"/config?kind=DestinationRule&namespace=shop&name=rule-" + last: {"What of it changes nothing"},
		"/policies":                           {fmt.Sprintf("1–100 of %d", services)},
		"/policies?q=" + last + "&limit=1000": {"rule-" + last},
		"/conflicts":                          {"There is nothing here."},
		"/explain?host=service-00001.example.com&namespace=shop": {"10.1.0.1:8080"},
		"/proxies":            {fmt.Sprintf("of %d", proxies)},
		"/proxies?limit=1000": {"web-0000."},
		"/proxies?q=wildcard": {"1–1 of 1 found"},
		"/proxy?id=sidecar~10.2.0.1~wildcard.shop~shop.svc":                                    {fmt.Sprintf("1–100 of %d", services+3)},
		"/proxy?id=sidecar~10.2.0.1~wildcard.shop~shop.svc&limit=1000&type=Cluster":            {"service-00997."},
		"/resource?id=sidecar~10.2.0.1~wildcard.shop~shop.svc&type=RouteConfiguration&name=80": {"It is long: this is its beginning."},
		"/queue":        {"no push is running"},
		"/verify?run=1": {"No difference"},
		"/sources":      {"store"},
	} {
		page := p.html(target)
		demand(t, target, page, parts...)
		const most = 1 << 20
		if len(page) > most {
			t.Errorf("%s has %d bytes", target, len(page))
		}
		if strings.Contains(target, "/resource") {
			continue // its JSON is the whole resource
		}
		if w := ask(p.pages, target, "Accept", "application/json"); w.Code != http.StatusOK || w.Body.Len() > most {
			t.Errorf("%s as JSON: %d, %d bytes", target, w.Code, w.Body.Len())
		}
	}
}

// TestChangesMeanwhile: pages are asked for while everything changes and proxies come and go.
func TestChangesMeanwhile(t *testing.T) {
	t.Parallel()
	p := newMesh(t)
	var running sync.WaitGroup
	done := make(chan struct{})
	running.Go(func() {
		defer close(done)
		for i := range 30 {
			p.apply(strings.ReplaceAll(mesh, "prefix: /new", fmt.Sprintf("prefix: /new-%d", i)))
			p.must(p.kubernetes.Set(&registry.Service{
				Hostname: "cart.example.com", DefaultAddress: registry.UnspecifiedAddress,
				Ports:      []*registry.Port{{Name: "http", Number: 80, Protocol: registry.ProtocolHTTP}},
				Attributes: registry.ServiceAttributes{Name: "cart", Namespace: fmt.Sprintf("ns-%d", i%3), Provider: registry.Kubernetes},
			}, nil))
			c := p.connect(fmt.Sprintf("sidecar~10.9.0.%d~new.shop~shop.svc", i), "shop", nil, "80")
			if i%2 == 0 {
				c.Close()
			}
		}
	})
	for range 3 {
		running.Go(func() {
			for i := 0; ; i++ {
				for _, page := range []string{
					"/", "/configs", "/config?kind=VirtualService&namespace=shop&name=cart", "/services", "/conflicts", "/policies", "/proxies", "/queue",
					"/service?host=cart.example.com&namespace=shop&explain=1", "/explain?host=cart.example.com&namespace=shop&path=/new", "/verify?run=1",
					"/proxy?id=sidecar~10.0.0.9~web.shop~shop.svc", "/sources", "/workload?namespace=shop&name=cart-1",
					"/resource?id=sidecar~10.0.0.9~web.shop~shop.svc&type=RouteConfiguration&name=80",
				} {
					if w := ask(p.pages, page); w.Code != http.StatusOK {
						t.Errorf("%s: %d %s", page, w.Code, w.Body)
						return
					}
				}
				select {
				case <-done:
					if i > 1 {
						return
					}
				default:
				}
			}
		})
	}
	running.Wait()
}

// FuzzQuery: the response to any request has one of few statuses, has the security headers, and is
// bounded.
func FuzzQuery(f *testing.F) {
	p := newPlane(f, nil)
	p.apply(mesh)
	p.connect("sidecar~10.0.0.9~web.shop~shop.svc", "shop", nil, "80")
	for _, seed := range [][2]string{
		{"", ""},
		{"configs", "kind=VirtualService&q=a%00b&from=1&limit=0"},
		{"configs", "problems=1&from=3"},
		{"config", "kind=Gateway&name=%ff&format=yaml"},
		{"services", "from=99999999999999999999"},
		{"services.json", "limit=1&limit=2"},
		{"service", "host=cart.example.com&namespace=shop&explain=1&from=7"},
		{"workload", "name=" + evil},
		{"policies", "q=" + evil},
		{"explain", "host=CART.example.com&headers=a:b%0ac"},
		{"explain", "host=*&port=0&path=/?%zz"},
		{"explain", "host=cart.example.com&proxy=sidecar~10.0.0.9~web.shop~shop.svc&method=%0d%0a"},
		{"proxies", "state=x&cluster=y"},
		{"proxy", "stream=1&type=Cluster&status=SYNCED"},
		{"resource", "stream=1&type=Cluster&name=outbound|80||cart.example.com"},
		{"verify", "run=1"},
		{"sources", "source=store"},
		{"style.css", "%"},
		{"../configs", ";"},
		{"index.json", "format=html"},
		{".json", ""},
		{"\x00error", ""},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, page, query string) {
		r := request(http.MethodGet, "/")
		r.URL.Path, r.URL.RawQuery = "/"+page, query
		w := recorded(p.pages, r)
		switch w.Code {
		case http.StatusOK, http.StatusBadRequest, http.StatusNotFound, http.StatusRequestURITooLong:
		default:
			t.Errorf("%q: %d %s", r.URL, w.Code, w.Body)
		}
		if !strings.HasPrefix(w.Header().Get("Content-Security-Policy"), "default-src 'none'") || w.Body.Len() > 1<<20 {
			t.Errorf("%q: %s, %d bytes", r.URL, w.Header(), w.Body.Len())
		}
		harmless(t, r.URL.String(), w.Body.String(), w.Header().Get("Content-Type") != "text/html; charset=utf-8")
	})
}
