// SPDX-License-Identifier: Apache-2.0

package debug_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

const mesh = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: cart}
spec:
  hosts: [cart.example.com]
  addresses: [240.0.0.1]
  ports: [{name: http, number: 80, protocol: HTTP}]
  location: MESH_INTERNAL
  resolution: STATIC
  workloadSelector: {labels: {app: cart}}
---
apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: {name: cart-1, labels: {app: cart}}
spec: {address: 10.0.0.1, labels: {app: cart}}
---
apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: {name: cart-2, labels: {app: basket}}
spec: {address: 10.0.0.2, labels: {app: basket}}
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: hidden, namespace: bank}
spec:
  hosts: [ledger.example.com]
  addresses: [240.0.0.2]
  exportTo: [.]
  ports: [{name: http, number: 80, protocol: HTTP}]
  location: MESH_INTERNAL
  resolution: STATIC
  endpoints: [{address: 10.0.1.1}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: cart}
spec:
  hosts: [cart.example.com]
  http:
  - name: canary
    match: [{uri: {prefix: /new}}]
    route: [{destination: {host: cart.example.com, subset: v2}}]
  - route: [{destination: {host: cart.example.com}}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: beta}
spec:
  hosts: [beta.example.com]
  http:
  - headers: {request: {add: {x-unwelcome: "1"}}}
    route: [{destination: {host: cart.example.com}}]
---
apiVersion: networking.istio.io/v1
kind: Sidecar
metadata: {name: nobody, namespace: empty}
spec:
  workloadSelector: {labels: {app: none}}
  egress: [{hosts: ["./*"]}]
`

// newMesh starts a control plane with some objects and two proxies. One of them rejects routes of a
// VirtualService.
func newMesh(t *testing.T) *plane {
	t.Helper()
	p := newPlane(t, nil)
	p.apply(mesh)
	refuse := func(r xdstest.Response) error {
		for _, resource := range r.Resources {
			if r.TypeURL == envoy.RouteType && bytes.Contains(resource.Any.GetValue(), []byte("x-unwelcome")) {
				return errors.New("route 80: <b>beta</b> is not welcome")
			}
		}
		return nil
	}
	p.connect("sidecar~10.0.0.9~web.shop~shop.svc", "shop", nil, "80")
	p.connect("sidecar~10.0.0.8~old.shop~shop.svc", "shop", refuse, "80")
	p.waitFor(p.quarantined)
	return p
}

// TestPages: each page has its content as HTML.
func TestPages(t *testing.T) {
	t.Parallel()
	p := newMesh(t)
	for target, parts := range map[string][]string{
		"/": {
			"<h1>Overview</h1>", "Resources that a proxy refuses", "is not welcome", "left out: VirtualService shop/beta", "connected proxies",
			`aria-current="page">Overview`, // each example links to its page
			`<a href="proxy?id=sidecar~10.0.0.8~old.shop~shop.svc&amp;stream=`, `<a href="config?kind=networking.istio.io%2Fv1%2FVirtualService&amp;name=beta`,
		},
		"/configs":                 {"VirtualService (2)", ">cart</a>", "valid"},
		"/configs?kind=Sidecar":    {">nobody</a>", "1–1 of 1"},
		"/configs?q=app%3Dcart":    {">cart-1</a>", "1–1 of 1 found, 7 in all"},
		"/configs?namespace=bank":  {">hidden</a>"},
		"/configs?problems=1":      {"that were checked"},
		"/configs?q=nothing-of-it": {"Nothing found among 7."},
		"/config?kind=VirtualService&namespace=shop&name=beta": {
			"Proxies that refuse it", "&lt;b&gt;beta&lt;/b&gt; is not welcome", "sidecar~10.0.0.8~old.shop~shop.svc", "beta.example.com",
		},
		"/config?kind=networking.istio.io/v1/WorkloadEntry&namespace=shop&name=cart-2": {"address: 10.0.0.2", "Which ServiceEntries select it"},
		"/services":                {"cart.example.com", "ledger.example.com", "80 HTTP"},
		"/services?seen_from=shop": {"cart.example.com", "1–1 of 1 found, 2 in all"},
		"/services?without=1":      {"Nothing found among 2."},
		"/service?host=cart.example.com&namespace=shop": {
			"10.0.0.1", ">External<", "Explain: where they come from", `<a href="explain?host=cart.example.com&amp;namespace=shop&amp;port=80">80</a>`,
		},
		"/service?host=cart.example.com&namespace=shop&explain=1": {
			"ServiceEntry shop/cart", "selects app=cart", "WorkloadEntry shop/cart-1", "Look for a workload that is missing",
		},
		"/service?host=ledger.example.com&namespace=bank&seen_from=shop": {"do not see it: it is exported to [.]"},
		"/workload":                            {"Which ServiceEntries select a workload"},
		"/workload?namespace=shop&name=cart-1": {"app=cart", `<span class="tag good">yes</span>`},
		"/workload?namespace=shop&name=cart-2": {`<span class="tag bad">no</span>`, "app"},
		"/conflicts":                           {"There is nothing here."},
		"/policies":                            {"VirtualService shop/cart", "v2", "beta", "<option>VirtualService</option>"},
		"/policies?kind=Gateway":               {"<option selected>Gateway</option>", "Nothing found"},
		"/explain":                             {"<h1>Explain a call</h1>", `<label for="host">Host</label>`},
		"/explain?host=cart.example.com&path=/new/a&namespace=shop": {
			"http[0] &#34;canary&#34;", "no DestinationRule that counts for the client has a subset", "missing",
			"sent on, but it fails: no DestinationRule",
		},
		"/explain?host=cart.example.com&namespace=shop": {"10.0.0.1:80", "http[1]"},
		"/explain?host=ledger.example.com&namespace=shop": {
			"Service bank/ledger.example.com exists, but the namespace &#34;shop&#34; does not see it: it is exported to [.]",
		},
		"/explain?host=ledger&namespace=shop&client=grpc": {"No registry has a service ledger."},
		"/explain?host=beta.example.com&proxy=sidecar~10.0.0.8~old.shop~shop.svc": {
			"What the proxy refuses", "is not welcome", "VirtualService shop/beta",
		},
		"/proxies":                {"sidecar~10.0.0.9~web.shop~shop.svc", "up to date", "refuses: 1", "objects left out: 1"},
		"/proxies?state=refusing": {"old.shop", "1–1 of 1 found, 2 in all"},
		"/proxies?q=web":          {"web.shop", "1–1 of 1 found, 2 in all"},
		"/proxy?id=sidecar~10.0.0.8~old.shop~shop.svc": {
			"What it refuses", "is not welcome", "without <a", "RouteConfiguration", "outbound|80||cart.example.com", "SYNCED",
		},
		"/proxy?id=sidecar~10.0.0.8~old.shop~shop.svc&type=RouteConfiguration&status=SYNCED": {"1–1 of 1 found"},
		"/resource?id=sidecar~10.0.0.9~web.shop~shop.svc&type=RouteConfiguration&name=80": {
			"x-unwelcome", "What it was sent", "SYNCED",
		},
		"/queue":        {"no push is running", "full requests wait", "endpoints only"},
		"/verify":       {"Compare now"},
		"/verify?run=1": {"No difference"},
		"/sources":      {"store", "synced"},
	} {
		t.Run(target, func(t *testing.T) { //nolint:paralleltest // they share the plane, which ends with the test
			demand(t, target, htmlOf(t, p.pages, target), append(parts, `<html lang="en">`, "</html>")...)
		})
	}
	if page := p.html("/resource?id=sidecar~10.0.0.8~old.shop~shop.svc&type=RouteConfiguration&name=80"); !strings.Contains(page, "cart.example.com") || strings.Contains(page, "x-unwelcome") {
		t.Error("the proxy that refuses an object is shown with it")
	}
}

// TestJSON: what programs get.
func TestJSON(t *testing.T) {
	t.Parallel()
	p := newMesh(t)
	var proxies struct {
		List struct {
			Total, Matching int
			Items           []struct {
				ID       string
				Refusals int
				LeftOut  int `json:"left_out"`
			}
			Next string
		}
	}
	p.json("/proxies?limit=1", &proxies)
	if l := proxies.List; l.Total != 2 || l.Matching != 2 || len(l.Items) != 1 || l.Items[0].Refusals != 1 || l.Items[0].LeftOut != 1 || l.Next != "?from=1&limit=1" {
		t.Errorf("the first proxy: %+v", l)
	}
	var rest struct {
		List struct {
			From     int
			Previous string
			Items    []struct{ ID string }
		}
	}
	p.json("/proxies.json"+proxies.List.Next, &rest)
	if l := rest.List; l.From != 1 || l.Previous != "?from=0&limit=1" || len(l.Items) != 1 || l.Items[0].ID != "sidecar~10.0.0.9~web.shop~shop.svc" {
		t.Errorf("the second proxy: %+v", l)
	}
	var call struct {
		VirtualService string `json:"virtual_service"`
		Rule           string
		Destinations   []struct{ Cluster, Missing string }
	}
	p.json("/explain?host=cart.example.com&namespace=shop&path=/new", &call)
	if call.VirtualService != "shop/cart" || len(call.Destinations) != 1 || !strings.Contains(call.Destinations[0].Missing, `subset "v2"`) {
		t.Errorf("the call: %+v", call)
	}
	var config struct {
		Object struct {
			Kind string
			Spec struct{ Hosts []string }
		}
	}
	p.json("/config?kind=VirtualService&namespace=shop&name=beta", &config)
	if config.Object.Kind != "VirtualService" || len(config.Object.Spec.Hosts) != 1 {
		t.Errorf("the object: %+v", config)
	}
	var resource struct {
		Status string
		Sent   struct {
			Message struct {
				Name string
			}
		} `json:"sent_content"`
	}
	p.json("/resource?id=sidecar~10.0.0.9~web.shop~shop.svc&type=RouteConfiguration&name=80", &resource)
	if resource.Status != "SYNCED" || resource.Sent.Message.Name != "80" {
		t.Errorf("the resource: %+v", resource)
	}
	for _, page := range []string{
		"index", "configs", "services", "service.json?host=cart.example.com&namespace=shop", "workload", "conflicts", "policies", "explain", "queue",
		"verify", "sources", "proxy.json?id=sidecar~10.0.0.9~web.shop~shop.svc",
	} {
		if !strings.Contains(page, ".json") {
			page += ".json"
		}
		var any map[string]any
		p.json("/"+page, &any)
		if len(any) == 0 {
			t.Errorf("%s is empty", page)
		}
	}
	w := ask(p.pages, "/config?kind=VirtualService&namespace=shop&name=beta&format=yaml")
	if w.Code != 200 || w.Header().Get("Content-Type") != "application/yaml; charset=utf-8" || !strings.Contains(w.Body.String(), "apiVersion: networking.istio.io/v1\nkind: VirtualService\n") {
		t.Errorf("as YAML: %d %s\n%s", w.Code, w.Header(), w.Body)
	}
}
