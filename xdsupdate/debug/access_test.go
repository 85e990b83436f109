// SPDX-License-Identifier: Apache-2.0

package debug_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/registry"
	registrymemory "github.com/pilotkit/pilotkit/registry/memory"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/debug"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// TestHeaders: every response has the security headers.
func TestHeaders(t *testing.T) {
	t.Parallel()
	forbidden := debug.New(debug.Options{Authorize: func(*http.Request) error { return errors.New("no") }})
	open := debug.New(debug.Options{Services: registrymemory.New()})
	for name, w := range map[string]*httptest.ResponseRecorder{
		"page": ask(open, "/services"), "json": ask(open, "/services.json"), "style": ask(open, "/style.css"), "missing": ask(open, "/nothing"),
		"error": ask(open, "/services?from=x"), "forbidden": ask(forbidden, "/"),
	} {
		for header, want := range map[string]string{
			"Content-Security-Policy": "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
			"X-Content-Type-Options":  "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store", "Vary": "Accept",
			"Cross-Origin-Resource-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin",
		} {
			if got := w.Header().Get(header); got != want {
				t.Errorf("%s: %s: %q, want %q", name, header, got, want)
			}
		}
	}
}

// TestMethods: only GET and HEAD are answered, and HEAD as GET without a body.
func TestMethods(t *testing.T) {
	t.Parallel()
	h := debug.New(debug.Options{Services: registrymemory.New()})
	for _, method := range []string{"POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE", "BREW"} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, request(method, "/services"))
		if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "GET, HEAD" {
			t.Errorf("%s: %d %s", method, w.Code, w.Header())
		}
	}
	for _, target := range []string{"/", "/services", "/services.json", "/style.css", "/nothing"} {
		get, head := ask(h, target), httptest.NewRecorder()
		h.ServeHTTP(head, request(http.MethodHead, target))
		if head.Code != get.Code || head.Body.Len() > 0 || head.Header().Get("Content-Length") != get.Header().Get("Content-Length") {
			t.Errorf("HEAD %s: %d %s, %d bytes; GET: %d %s", target, head.Code, head.Header(), head.Body.Len(), get.Code, get.Header())
		}
	}
}

// TestAuthorize: a rejected request gets only the reason, before anything is read.
func TestAuthorize(t *testing.T) {
	t.Parallel()
	asked := 0
	h := debug.New(debug.Options{
		Sources: []configstore.Source{{Name: "secret source", State: func() configstore.SourceState { asked++; return configstore.SourceState{} }}},
		Authorize: func(r *http.Request) error {
			switch r.Header.Get("Authorization") {
			case "operator":
				return nil
			case "panic":
				panic("boom")
			default:
				return errors.New("operators <only>")
			}
		},
	})
	for _, target := range []string{"/", "/sources", "/sources.json", "/style.css", "/nothing", ""} {
		r := request(http.MethodGet, "/")
		if r.URL.Path = target; target == "/sources.json" {
			r.Header.Set("Accept", "application/json")
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != http.StatusForbidden || w.Body.String() != "operators <only>\n" || w.Header().Get("Content-Type") != "text/plain; charset=utf-8" {
			t.Errorf("%q: %d %s %q", target, w.Code, w.Header(), w.Body)
		}
	}
	if w := ask(h, "/sources", "Authorization", "panic"); w.Code != http.StatusForbidden || strings.Contains(w.Body.String(), "boom") {
		t.Errorf("when the check panics: %d %s", w.Code, w.Body)
	}
	if asked != 0 {
		t.Errorf("the source was asked %d times", asked)
	}
	if w := ask(h, "/sources", "Authorization", "operator"); w.Code != http.StatusOK || asked != 1 {
		t.Errorf("an operator gets %d; the source was asked %d times", w.Code, asked)
	}
}

// TestParts: pages exist for the parts in the Options, for every combination of missing parts, and
// links lead only to existing pages.
func TestParts(t *testing.T) {
	t.Parallel()
	store := memory.NewController(memory.Make(istio.Schemas()))
	policies := traffic.New(store)
	server := ads.New(nil, ads.Options{Providers: []ads.Provider{policies}})
	services := registrymemory.New()
	for name, test := range map[string]struct {
		options debug.Options
		want    string
	}{
		"nothing":  {debug.Options{}, ""},
		"configs":  {debug.Options{Configs: store}, "configs"},
		"services": {debug.Options{Services: services}, "services verify"},
		"server":   {debug.Options{Server: server}, "proxies queue verify"},
		"policies": {debug.Options{Policies: policies}, "explain policies"},
		"sources":  {debug.Options{Sources: []configstore.Source{configstore.SourceOf("a", store)}}, "sources"},
	} {
		h := debug.New(test.options)
		page := htmlOf(t, h, "/")
		_, rest, _ := strings.Cut(page, "<nav")
		nav, _, _ := strings.Cut(rest, "</nav>")
		var links []string
		for _, part := range strings.Split(nav, `href="`)[1:] {
			to, _, _ := strings.Cut(part, `"`)
			links = append(links, to)
			htmlOf(t, h, "/"+strings.TrimPrefix(to, "./"))
		}
		if got := strings.Join(links[1:], " "); got != test.want {
			t.Errorf("%s: links to %q, want %q", name, got, test.want)
		}
		for _, other := range []string{"configs", "services", "proxies", "explain", "sources", "conflicts"} {
			if !strings.Contains(test.want, other) && ask(h, "/"+other).Code != http.StatusNotFound {
				t.Errorf("%s: there is a page %s", name, other)
			}
		}
	}
}

// TestMounted: the pages work below any path: all links are relative.
func TestMounted(t *testing.T) {
	t.Parallel()
	h := debug.New(debug.Options{Services: registrymemory.New()})
	mux := http.NewServeMux()
	mux.Handle("/some/where/", http.StripPrefix("/some/where", h))
	mux.Handle("/bare", http.StripPrefix("/bare", h))
	page := htmlOf(t, mux, "/some/where/services")
	for _, part := range strings.Split(page, `href="`)[1:] {
		to, _, _ := strings.Cut(part, `"`)
		if strings.HasPrefix(to, "/") || strings.Contains(to, ":") {
			t.Errorf("the link %q is not relative", to)
		}
	}
	demand(t, "the page", page, `href="style.css"`, `href="./"`, `action="services"`)
	htmlOf(t, mux, "/some/where/")
	if w := ask(mux, "/bare?x=1"); w.Code != http.StatusTemporaryRedirect || w.Header().Get("Location") != "./bare/" {
		t.Errorf("without a slash: %d, to %q", w.Code, w.Header().Get("Location"))
	}
}

// TestErrors: an invalid request gets an error in the requested format.
func TestErrors(t *testing.T) {
	t.Parallel()
	p := newPlane(t, nil)
	for target, want := range map[string]struct {
		status int
		text   string
	}{
		"/nothing":                        {404, `there is no page "nothing"`},
		"/services?from=-1":               {400, "from: must be a number from 0 to"},
		"/services?limit=1001":            {400, "limit: must be a number from 0 to 1000"},
		"/configs?kind=None":              {404, `the store has no kind "None"`},
		"/config":                         {404, `the store has no kind ""`},
		"/config?kind=Gateway&name=a":     {404, "there is no Gateway a"},
		"/service?host=a&namespace=b":     {404, `no registry has a service a in the namespace "b"`},
		"/proxy":                          {404, "no proxy"},
		"/proxy?id=a":                     {404, "no proxy"},
		"/resource?id=a":                  {404, "no proxy"},
		"/explain?host=a&port=65536":      {400, "port: must be a number"},
		"/explain?host=a&path=b":          {400, "path: must begin with a slash"},
		"/explain?host=a&scheme=ftp":      {400, "scheme: "},
		"/explain?host=a&headers=b":       {400, "headers: each line must be NAME: VALUE"},
		"/explain?host=a&claims=[]":       {400, "claims: must be a JSON object"},
		"/explain?inbound=1&source=x":     {400, "source: must be an IP address"},
		"/explain?host=a&proxy=b":         {404, `proxy: "b" is not connected`},
		"/?" + strings.Repeat("a", 17000): {414, "the query is too long"},
	} {
		w := ask(p.pages, target, "Accept", "application/json")
		var got struct{ Error string }
		if json.Unmarshal(w.Body.Bytes(), &got) != nil {
			got.Error = w.Body.String()
		}
		if w.Code != want.status || !strings.Contains(got.Error, want.text) {
			t.Errorf("%.50s: %d %q, want %d %q", target, w.Code, got.Error, want.status, want.text)
		}
		if w := ask(p.pages, target); w.Code != want.status {
			t.Errorf("%.50s as HTML: %d", target, w.Code)
		}
	}
}

// broken is a discovery that panics.
type broken struct{ registry.ServiceDiscovery }

func (broken) Services() []*registry.Service { panic("boom") }

// TestPanics: a panic affects only its page, or its row, and its value is not shown.
func TestPanics(t *testing.T) {
	t.Parallel()
	h := debug.New(debug.Options{Services: broken{}, Sources: []configstore.Source{
		{Name: "bad", State: func() configstore.SourceState { panic("boom") }},
		{Name: "good", State: func() configstore.SourceState { return configstore.SourceState{Synced: true} }},
	}})
	if w := ask(h, "/services"); w.Code != http.StatusInternalServerError || strings.Contains(w.Body.String(), "boom") {
		t.Errorf("services: %d %s", w.Code, w.Body)
	}
	demand(t, "the page of sources", htmlOf(t, h, "/sources"), "panic: boom", "good", "synced")
	if w := ask(h, "/"); w.Code != http.StatusInternalServerError { // and the turn is given back
		t.Errorf("the first page: %d", w.Code)
	}
	if w := ask(h, "/"); w.Code != http.StatusInternalServerError {
		t.Errorf("the first page, again: %d", w.Code)
	}
}

// TestNewPanics: what New does not take.
func TestNewPanics(t *testing.T) {
	t.Parallel()
	state := func() configstore.SourceState { return configstore.SourceState{} }
	for want, options := range map[string][]debug.Options{
		"not merged":                {{}, {}},
		`invalid source name ""`:    {{Sources: []configstore.Source{{State: state}}}},
		"two sources have the name": {{Sources: []configstore.Source{{Name: "a", State: state}, {Name: "a", State: state}}}},
		"State is nil":              {{Sources: []configstore.Source{{Name: "a"}}}},
	} {
		func() {
			defer func() {
				if text, _ := recover().(string); !strings.Contains(text, want) {
					t.Errorf("panicked with %q, want %q", text, want)
				}
			}()
			debug.New(options...)
		}()
	}
}
