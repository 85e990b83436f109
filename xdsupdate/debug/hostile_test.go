// SPDX-License-Identifier: Apache-2.0

package debug_test

import (
	"encoding/json"
	"errors"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/types/known/structpb"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/debug"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// evil is a text that is to be a text wherever it comes.
const evil = `"'></q></pre></textarea></title><x-evil a="b" onmouseover='c'>javascript:alert(1)&lt;x-evil>{{.}}\`

// evilConfigs is a store that an attacker has filled without any validation.
type evilConfigs struct{ config *configstore.Config }

func (evilConfigs) Schemas() configstore.Schemas { return istio.Schemas() }

func (e evilConfigs) Get(kind configstore.GroupVersionKind, _, _ string) *configstore.Config {
	if kind == e.config.GroupVersionKind {
		return e.config
	}
	return nil
}

func (e evilConfigs) List(kind configstore.GroupVersionKind, _ string) []*configstore.Config {
	if kind == e.config.GroupVersionKind {
		return []*configstore.Config{e.config}
	}
	return nil
}

// evilServices is a registry like that.
type evilServices struct {
	registry.ServiceDiscovery
	service *registry.Service
}

func (e evilServices) Services() []*registry.Service { return []*registry.Service{e.service} }

func (e evilServices) Conflicts() []aggregate.Conflict {
	return []aggregate.Conflict{{Hostname: e.service.Hostname, Services: []*registry.Service{e.service, e.service}}}
}

func (e evilServices) InstancesByPort(*registry.Service, uint32) []*registry.ServiceInstance {
	return []*registry.ServiceInstance{{Service: e.service, ServicePort: e.service.Ports[0], Endpoint: &registry.Endpoint{
		Addresses: []string{evil}, ServicePortName: evil, WorkloadName: evil, Shared: &registry.EndpointAttributes{
			Locality: evil, ClusterID: evil, TLSMode: evil, Labels: registry.Labels{evil: evil},
		},
	}}}
}

// evilOptions are all that.
func evilOptions() debug.Options {
	labels := map[string]string{evil: evil}
	return debug.Options{
		Configs: evilConfigs{&configstore.Config{
			Meta: configstore.Meta{
				GroupVersionKind: istio.ServiceEntry, Name: evil, Namespace: evil, Labels: labels, Annotations: labels, ResourceVersion: evil,
			},
			Spec: &networking.ServiceEntry{Hosts: []string{evil}, Ports: []*networking.ServicePort{{Number: 70000, Name: evil, Protocol: evil}}},
		}},
		Services: evilServices{service: &registry.Service{
			Hostname: evil, Ports: []*registry.Port{{Name: evil, Number: 80, Protocol: evil}}, DefaultAddress: evil,
			Attributes: registry.ServiceAttributes{Namespace: evil, ObjectName: evil, Provider: evil, ExportTo: []registry.Visibility{evil}},
		}},
		Sources: []configstore.Source{{Name: evil, State: func() configstore.SourceState {
			return configstore.SourceState{Err: errors.New(evil), StaleSince: time.Now(), Freshness: configstore.Stale, Problems: []configstore.SourceProblem{{
				Object: configstore.ConfigKey{Kind: istio.ServiceEntry, Name: evil, Namespace: evil}, Text: evil,
			}}}
		}}},
	}
}

// links are the links of a page.
var links = regexp.MustCompile(`(?:href|action)="([^"]*)"`)

// crawl asks for all pages that lead from one to the other, each also as JSON and in any case with some parameters, and
// has each looked at.
func crawl(t *testing.T, h http.Handler, look func(target, page string, isJSON bool)) {
	t.Helper()
	seen := map[string]bool{}
	waiting := []string{"/"}
	for len(waiting) > 0 && len(seen) < 400 {
		target := waiting[0]
		waiting = waiting[1:]
		if seen[target] {
			continue
		}
		seen[target] = true
		w := ask(h, target)
		page := w.Body.String()
		isHTML := strings.HasPrefix(w.Header().Get("Content-Type"), "text/html")
		if w.Code != http.StatusOK && !strings.Contains(page, "The store does not have it") {
			t.Errorf("%s: %d\n%.500s", target, w.Code, page)
		}
		look(target, page, !isHTML)
		if !isHTML {
			continue
		}
		for _, link := range links.FindAllStringSubmatch(page, -1) {
			to := html.UnescapeString(link[1])
			u, err := url.Parse(to)
			if err != nil || u.IsAbs() || u.Host != "" || strings.HasPrefix(u.Path, "/") {
				t.Fatalf("%s links to %q: %v", target, to, err)
			}
			if to == "#main" || strings.HasPrefix(link[0], "action") { // a form has parameters
				continue
			}
			base, _ := url.Parse(target)
			waiting = append(waiting, base.ResolveReference(u).String())
		}
	}
	if len(seen) < 15 {
		t.Errorf("%d pages were found", len(seen))
	}
}

// harmless requires that no part of a text is interpreted as markup.
func harmless(tb testing.TB, target, page string, isJSON bool) {
	tb.Helper()
	if strings.Contains(page, "<x-evil") && !strings.Contains(target, "format=yaml") {
		tb.Errorf("%s has an element that somebody wrote:\n%s", target, page)
	}
	if !isJSON && (strings.Contains(page, `"b" onmouseover`) || strings.Contains(page, "onmouseover='c'") || strings.Contains(page, "<script")) {
		tb.Errorf("%s has an attribute or a script that somebody wrote:\n%s", target, page)
	}
}

// TestHostileTexts: names, labels, specs, texts of sources and proxies, and parameters of requests
// are text, wherever they are shown.
func TestHostileTexts(t *testing.T) {
	t.Parallel()
	h := debug.New(evilOptions())
	pages := 0
	crawl(t, h, func(target, page string, isJSON bool) {
		pages++
		harmless(t, target, page, isJSON)
		if isJSON && !strings.Contains(target, "yaml") && target != "/style.css" && !json.Valid([]byte(page)) {
			t.Errorf("%s is no JSON:\n%s", target, page)
		}
	})
	all := url.Values{}
	for _, name := range []string{"q", "namespace", "kind", "host", "name", "id", "stream", "type", "status", "state", "source", "proxy", "path", "headers", "seen_from", "cluster", "client", "method"} {
		all.Set(name, evil)
	}
	for _, page := range []string{"", "configs", "config", "services", "service", "workload", "conflicts", "sources", "verify", "nothing", url.PathEscape(evil)} {
		w := ask(h, "/"+page+"?"+all.Encode())
		harmless(t, page, w.Body.String(), false)
	}
	p := newPlane(t, nil)
	p.apply(mesh)
	for _, page := range []string{"explain", "policies", "proxies", "proxy", "resource"} {
		all.Del("headers")
		w := ask(p.pages, "/"+page+"?"+all.Encode())
		harmless(t, page, w.Body.String(), false)
	}
}

// TestHostileProxies: the names of proxies, and the texts of their NACKs, are escaped, too.
func TestHostileProxies(t *testing.T) {
	t.Parallel()
	p := newPlane(t, nil)
	p.apply(mesh)
	p.connect(evil, evil, func(r xdstest.Response) error {
		if r.TypeURL == envoy.RouteType && strings.Contains(string(r.Resources[0].Any.GetValue()), "x-unwelcome") {
			return errors.New(evil)
		}
		return nil
	}, "80")
	p.waitFor(p.quarantined)
	refusals := 0
	crawl(t, p.pages, func(target, page string, isJSON bool) {
		harmless(t, target, page, isJSON)
		refusals += strings.Count(page, "alert(1)")
	})
	if refusals < 20 {
		t.Errorf("the texts of the proxy are shown %d times", refusals)
	}
}

const (
	password = "never-shown-value"
	pemKey   = "-----BEGIN RSA PRIVATE KEY-----\n" + password + "\n-----END RSA PRIVATE KEY-----"
)

// TestSecrets: no page has a key or a password, in any field.
func TestSecrets(t *testing.T) {
	t.Parallel()
	refuse := func(r xdstest.Response) error {
		if r.TypeURL == envoy.RouteType {
			return errors.New("cannot read " + pemKey + " of it")
		}
		return nil
	}
	p := newPlane(t, func(o *debug.Options) {
		o.Sources = []configstore.Source{{Name: "vault", State: func() configstore.SourceState {
			return configstore.SourceState{Err: errors.New(pemKey), Problems: []configstore.SourceProblem{{Text: "line 1: " + pemKey}, {Text: pemKey[:40], Warning: true}}}
		}}}
		o.Redact = func(c *configstore.Config) { delete(c.Annotations, "example.com/token") }
	})
	p.apply(mesh)
	patch, err := structpb.NewStruct(map[string]any{
		"private_key": map[string]any{"inline_string": password}, "password": password, "list": []any{map[string]any{"apiKey": password}},
		"text": "shown " + pemKey, "client-secret": 1, "shown": "yes",
	})
	p.must(err)
	_, err = p.store.Create(configstore.Config{
		Meta: configstore.Meta{
			GroupVersionKind: istio.EnvoyFilter, Namespace: "shop", Name: "filter", Annotations: map[string]string{
				"kubectl.kubernetes.io/last-applied-configuration": password, "example.com/token": password, "shown": "too " + pemKey,
			},
		},
		Spec: &networking.EnvoyFilter{ConfigPatches: []*networking.EnvoyFilter_EnvoyConfigObjectPatch{{
			ApplyTo: networking.EnvoyFilter_CLUSTER, Patch: &networking.EnvoyFilter_Patch{Operation: networking.EnvoyFilter_Patch_MERGE, Value: patch},
		}}},
	})
	p.must(err)
	p.must(p.server.SetResource("kept", &tlsv3.Secret{Name: "kept", Type: &tlsv3.Secret_TlsCertificate{TlsCertificate: &tlsv3.TlsCertificate{
		CertificateChain: &core.DataSource{Specifier: &core.DataSource_InlineString{InlineString: "a certificate"}},
		PrivateKey:       &core.DataSource{Specifier: &core.DataSource_InlineString{InlineString: password}},
	}}}))
	c := p.connect("sidecar~10.0.0.9~web.shop~shop.svc", "shop", refuse)
	const secretType = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret" //nolint:gosec // a type URL
	p.must(c.Subscribe(secretType, "kept"))
	p.must(c.Subscribe(envoy.RouteType, "80"))
	p.waitFor(p.refused)
	all := ""
	crawl(t, p.pages, func(target, page string, _ bool) {
		if strings.Contains(page, password) {
			t.Errorf("%s shows a secret:\n%s", target, page)
		}
		all += page
	})
	demand(t, "all pages", all, "a certificate", "shown: &#34;yes&#34;", "shown [redacted]", "cannot read [redacted] of it", "line 1: [redacted]", "too [redacted]")
}
