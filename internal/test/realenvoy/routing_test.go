// SPDX-License-Identifier: Apache-2.0

package realenvoy

import (
	"net/http"
	"testing"
	"time"
)

// routingRules are one rule for each thing that a rule can do.
const routingRules = `
  - match: [{headers: {x-version: {exact: two}}, uri: {prefix: /headers}}]
    route: [{destination: {host: shop.local.test, subset: two}}]
  - match: [{uri: {exact: /method}, method: {exact: PUT}}]
    route: [{destination: {host: shop.local.test, subset: two}}]
  - match: [{uri: {prefix: /query}, queryParams: {v: {regex: "t.o"}}}]
    route: [{destination: {host: shop.local.test, subset: two}}]
  - match: [{uri: {regex: "/reg/[0-9]+"}}]
    route: [{destination: {host: shop.local.test, subset: two}}]
  - match: [{uri: {prefix: /FOLDED}, ignoreUriCase: true}]
    route: [{destination: {host: shop.local.test, subset: two}}]
  - match: [{uri: {prefix: /without}, withoutHeaders: {x-no: {}}}]
    route: [{destination: {host: shop.local.test, subset: two}}]
  - match: [{uri: {prefix: /prefix/}}]
    rewrite: {uri: /new/, authority: other.example.com}
    route: [{destination: {host: shop.local.test, subset: one}}]
  - match: [{uri: {prefix: /swap}}]
    rewrite: {uriRegexRewrite: {match: "^/swap/([^/]+)/([^/]+)$", rewrite: '/\2/\1'}}
    route: [{destination: {host: shop.local.test, subset: one}}]
  - match: [{uri: {prefix: /moved}}]
    redirect: {uri: /there, scheme: https, redirectCode: 308}
  - match: [{uri: {prefix: /ported}}]
    redirect: {port: 8443}
  - match: [{uri: {prefix: /default}}]
    redirect: {scheme: https, port: 443}
  - match: [{uri: {prefix: /direct}}]
    directResponse: {status: 418, body: {string: tea}}
  - match: [{uri: {prefix: /operated}}]
    headers: {request: {set: {x-set: rule}, remove: [x-gone]}, response: {add: {x-answer: rule}}}
    route: [{destination: {host: shop.local.test, subset: one}, headers: {request: {add: {x-added: destination}}}}]
  - match: [{uri: {prefix: /slow}}]
    timeout: 0.2s
    retries: {attempts: 0}
    route: [{destination: {host: shop.local.test, subset: one}}]
  - match: [{uri: {prefix: /retried}}]
    retries: {attempts: 3, retryOn: 5xx}
    route: [{destination: {host: shop.local.test, subset: one}}]
  - match: [{uri: {prefix: /once}}]
    retries: {attempts: 0}
    route: [{destination: {host: shop.local.test, subset: one}}]
  - match: [{uri: {prefix: /abort}}]
    fault: {abort: {httpStatus: 451, percentage: {value: 100}}}
    route: [{destination: {host: shop.local.test, subset: one}}]
  - match: [{uri: {prefix: /delay}}]
    fault: {delay: {fixedDelay: 0.3s, percentage: {value: 100}}}
    route: [{destination: {host: shop.local.test, subset: one}}]
  - match: [{uri: {prefix: /cors}}]
    corsPolicy: {allowOrigins: [{exact: "https://a.example"}], allowMethods: [PUT], maxAge: 60s, allowCredentials: true}
    route: [{destination: {host: shop.local.test, subset: one}}]
  - match: [{uri: {prefix: /get}, method: {exact: GET}}]
    corsPolicy: {allowOrigins: [{exact: "https://a.example"}], unmatchedPreflights: IGNORE}
    route: [{destination: {host: shop.local.test, subset: one}}]
  - name: get~preflight
    match: [{uri: {prefix: /get}, method: {exact: OPTIONS}, headers: {origin: {}, access-control-request-method: {exact: GET}}}]
    corsPolicy: {allowOrigins: [{exact: "https://a.example"}], unmatchedPreflights: IGNORE}
    route: [{destination: {host: shop.local.test, subset: one}}]
  - match: [{uri: {prefix: /get}}]
    directResponse: {status: 405}
  - match: [{uri: {prefix: /mirrored}}]
    mirror: {host: shop.local.test, subset: two}
    route: [{destination: {host: shop.local.test, subset: one}}]
  - route: [{destination: {host: shop.local.test, subset: one}}]
`

const oneAndTwo = `  subsets: [{name: one, labels: {version: one}}, {name: two, labels: {version: two}}]
`

// TestRouting: what VirtualServices say of requests at gateways.
func TestRouting(t *testing.T) {
	eachProtocol(t, func(t *testing.T, delta bool) {
		t.Helper()
		one, two := startReporter(t, "one"), startReporter(t, "two")
		e := startEdge(t, delta, service("shop", "HTTP", one.endpoint(""), two.endpoint(""))+"---"+policy("shop", oneAndTwo)+"---"+rules(routingRules))
		for _, c := range []struct {
			method, path string
			headers      []string
			want         string
		}{
			{path: "/", want: "one"},
			{path: "/headers", headers: []string{"x-version", "two"}, want: "two"},
			{path: "/headers", headers: []string{"x-version", "three"}, want: "one"},
			{method: http.MethodPut, path: "/method", want: "two"},
			{path: "/method", want: "one"},
			{path: "/query?v=two", want: "two"},
			{path: "/query?v=twoo", want: "one"},
			{path: "/reg/12", want: "two"},
			{path: "/reg/12/", want: "one"},
			{path: "/folded/x", want: "two"},
			{path: "/without", want: "two"},
			{path: "/without", headers: []string{"x-no", "1"}, want: "one"},
			{path: "/", headers: []string{"host", "shop.example.com:8080"}, want: "one"},
			{path: "/", headers: []string{"host", "SHOP.example.com"}, want: "one"},
			{path: "/", headers: []string{"host", "other.example.com"}, want: ""},
		} {
			method := c.method
			if method == "" {
				method = http.MethodGet
			}
			if got, err := e.call(method, c.path, c.headers...); err != nil || got.By != c.want {
				t.Errorf("%s %s %v: by %q, %v; want %q", method, c.path, c.headers, got.By, err, c.want)
			}
		}
		e.testRewrites()
		e.testAnswers()
		e.testTries()
		e.testCORS()
		before := two.requests.Load()
		if got := e.who("/mirrored"); got != "one" {
			t.Errorf("mirrored: by %s", got)
		}
		e.await("mirrored request", func() bool { return two.requests.Load() > before })
		e.fine()
	})
}

// testRewrites: paths, hosts and headers of requests that are forwarded.
func (e *edge) testRewrites() {
	e.TB.Helper()
	if got := e.get("/prefix/x?q=1"); got.Path != "/new/x?q=1" || got.Host != "other.example.com" {
		e.TB.Errorf("prefix: %s%s", got.Host, got.Path)
	}
	if got := e.get("/swap/a/b"); got.Path != "/b/a" || got.Host != "shop.example.com" {
		e.TB.Errorf("expression: %s%s", got.Host, got.Path)
	}
	got := e.get("/operated", "x-set", "client", "x-gone", "1")
	if h := got.report.Header; h.Get("x-set") != "rule" || h.Get("x-added") != "destination" || h.Get("x-gone") != "" {
		e.TB.Errorf("headers of the request: %v", h)
	}
	if got.Response.Header.Get("x-answer") != "rule" {
		e.TB.Errorf("headers of the answer: %v", got.Response.Header)
	}
}

// testAnswers: answers of the gateway's own.
func (e *edge) testAnswers() {
	e.TB.Helper()
	if got := e.get("/moved?q=1"); got.StatusCode != http.StatusPermanentRedirect || got.Response.Header.Get("Location") != "https://shop.example.com/there?q=1" {
		e.TB.Errorf("redirect: %d to %s", got.StatusCode, got.Response.Header.Get("Location"))
	}
	if got := e.get("/ported", "host", "shop.example.com:1"); got.Response.Header.Get("Location") != "http://shop.example.com:8443/ported" {
		e.TB.Errorf("redirect to %s", got.Response.Header.Get("Location"))
	}
	// Envoy writes a port that it is told; without one the client's would remain.
	for host, want := range map[string]string{
		"shop.example.com": "https://shop.example.com/default", "shop.example.com:8080": "https://shop.example.com:443/default",
	} {
		if got := e.get("/default", "host", host); got.Response.Header.Get("Location") != want {
			e.TB.Errorf("redirect of %s to %s, want %s", host, got.Response.Header.Get("Location"), want)
		}
	}
	if got := e.get("/direct"); got.StatusCode != http.StatusTeapot || got.body != "tea" {
		e.TB.Errorf("direct response: %d %q", got.StatusCode, got.body)
	}
	if got := e.get("/abort"); got.StatusCode != http.StatusUnavailableForLegalReasons {
		e.TB.Errorf("abort: %d", got.StatusCode)
	}
	begun := time.Now()
	// Envoy uses the time of an event loop's wake-up as the time of an event.
	if got := e.who("/delay"); got != "one" || time.Since(begun) < 250*time.Millisecond {
		e.TB.Errorf("delay: %s after %v", got, time.Since(begun))
	}
}

// testTries: timeouts and retries.
func (e *edge) testTries() {
	e.TB.Helper()
	for _, c := range []struct{ path, header, value, want string }{
		{"/slow", "x-wait", "20s", "504"},
		{"/retried", "x-fail", "3", "one"},
		{"/retried", "x-fail", "4", "503"},
		{"/once", "x-fail", "1", "503"},
		{"/", "x-fail", "1", "503"}, // By default a 503 of the backend itself is no reason.
	} {
		if got := e.who(c.path, c.header, c.value); got != c.want {
			e.TB.Errorf("%s with %s %s: %s, want %s", c.path, c.header, c.value, got, c.want)
		}
	}
}

func (e *edge) testCORS() {
	e.TB.Helper()
	for origin, allowed := range map[string]string{"https://a.example": "https://a.example", "https://b.example": ""} {
		got, err := e.call(http.MethodOptions, "/cors", "origin", origin, "access-control-request-method", "PUT")
		if err != nil || got.Response.Header.Get("Access-Control-Allow-Origin") != allowed {
			e.TB.Errorf("preflight of %s: %v, %v", origin, got.Response, err)
		}
	}
	// As routes of the Gateway API have them: the CORS policy answers, and no backend.
	for _, c := range []struct {
		method, origin, asked, allowed string
		status                         int
	}{
		{"OPTIONS", "https://a.example", "GET", "https://a.example", 200},
		{"OPTIONS", "https://b.example", "GET", "", 200},
		{"OPTIONS", "https://a.example", "PUT", "", 405},
		{"OPTIONS", "", "", "", 405},
		{"GET", "https://a.example", "", "https://a.example", 200},
	} {
		var headers []string
		if c.origin != "" {
			headers = append(headers, "origin", c.origin)
		}
		if c.asked != "" {
			headers = append(headers, "access-control-request-method", c.asked)
		}
		got, err := e.call(c.method, "/get", headers...)
		if err != nil || got.StatusCode != c.status || got.Response.Header.Get("Access-Control-Allow-Origin") != c.allowed || c.method == "OPTIONS" && got.By != "" {
			e.TB.Errorf("%+v: by %q, %v, %v", c, got.By, got.Response, err)
		}
	}
}
