// SPDX-License-Identifier: Apache-2.0

package realclients

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protojson"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/internal/test/grpccall"
	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// formCase is rules of a VirtualService, and calls with the backends that are to
// answer them. The rules forward to the destinations "a", "b", and "none", which
// has no endpoints and no cluster; calls that no rule is for get to "rest".
type formCase struct {
	name, rules string
	calls       []formCall
}

type formCall struct {
	path    string
	headers map[string]string
	// want is the backend, or empty with the code of the error.
	want string
	code codes.Code
}

type h = map[string]string

// alone in the name of a case: there is no rule for the rest.
const alone = ", alone"

// timed is the name of the last case, whose calls are made one after the other when all
// others have ended: for C-core the time that it takes to find the target counts, too.
const timed = "timeout"

const toA = `"route": [{"destination": {"host": "a"}}]`

// formCases are the differences between clients, and their common behaviour, with the forms that we
// chose.
var formCases = []formCase{
	{"exact path", `{"match": [{"uri": {"exact": "/s/M"}}], ` + toA + `}`, []formCall{{path: "/s/M", want: "a"}, {path: "/s/m", want: "rest"}, {path: "/s/Mx", want: "rest"}}},
	{"prefix", `{"match": [{"uri": {"prefix": "/s/"}}], ` + toA + `}`, []formCall{{path: "/s/M", want: "a"}, {path: "/t/M", want: "rest"}}},
	{"regex", `{"match": [{"uri": {"regex": "/[st]/.*"}}], ` + toA + `}`, []formCall{{path: "/t/M", want: "a"}, {path: "/x/s/M", want: "rest"}}},
	{"case", `{"match": [{"uri": {"prefix": "/s/"}, "ignoreUriCase": true}], ` + toA + `}`, []formCall{{path: "/S/M", want: "a"}, {path: "/t/M", want: "rest"}}},
	{
		"header", `{"match": [{"headers": {"X-A": {"exact": "1"}}}, {"headers": {"x-b": {"prefix": "p"}}}, {"headers": {"x-c": {"regex": "r+"}}}, {"headers": {"x-d": {}}}], ` + toA + `}`,
		[]formCall{
			{headers: h{"x-a": "1"}, want: "a"},
			{headers: h{"x-a": "2"}, want: "rest"},
			{headers: h{"x-b": "px"}, want: "a"},
			{headers: h{"x-b": "xp"}, want: "rest"},
			{headers: h{"x-c": "rr"}, want: "a"},
			{headers: h{"x-c": "rs"}, want: "rest"},
			{headers: h{"x-d": "any"}, want: "a"},
			{want: "rest"},
		},
	},
	{
		"without header", `{"match": [{"withoutHeaders": {"x-a": {"exact": "1"}}}], ` + toA + `}`,
		[]formCall{{want: "a"}, {headers: h{"x-a": "2"}, want: "a"}, {headers: h{"x-a": "1"}, want: "rest"}},
	},
	{"header absent", `{"match": [{"withoutHeaders": {"x-a": {}}}], ` + toA + `}`, []formCall{{want: "a"}, {headers: h{"x-a": "1"}, want: "rest"}}},
	{
		"without two headers", `{"match": [{"withoutHeaders": {"x-a": {"exact": "1"}, "x-b": {"regex": "b.*"}}}], ` + toA + `}`,
		[]formCall{
			{want: "a"},
			{headers: h{"x-a": "2"}, want: "a"},
			{headers: h{"x-a": "2", "x-b": "a"}, want: "a"},
			{headers: h{"x-b": "bb"}, want: "rest"},
			{headers: h{"x-a": "1", "x-b": "c"}, want: "rest"},
		},
	},
	{
		"missing counts as empty", `{"match": [{"withoutHeaders": {"x-a": {"regex": "1?"}}}], ` + toA + `}`,
		[]formCall{{want: "rest"}, {headers: h{"x-a": "1"}, want: "rest"}, {headers: h{"x-a": "2"}, want: "a"}},
	},
	{"POST", `{"match": [{"method": {"exact": "POST"}}], ` + toA + `}`, []formCall{{want: "a"}}},
	{"GET", `{"match": [{"method": {"exact": "GET"}}], ` + toA + `}`, []formCall{{want: "rest"}}},
	{"nothing but GET" + alone, `{"match": [{"method": {"exact": "GET"}}], ` + toA + `}`, []formCall{{code: codes.Unimplemented}}},
	{"query", `{"match": [{"queryParams": {"q": {}}}], ` + toA + `}`, []formCall{{want: "rest"}}},
	{"claims", `{"match": [{"headers": {"@request.auth.claims.a": {"exact": "1"}}}], ` + toA + `}`, []formCall{{want: "rest"}}},
	{"redirect", `{"match": [{"uri": {"prefix": "/s/"}}], "redirect": {"uri": "/"}}`, []formCall{{path: "/s/M", code: codes.Unknown}, {path: "/t/M", want: "rest"}}},
	{
		"direct response", `{"match": [{"uri": {"prefix": "/s/"}}], "directResponse": {"status": 503}}, {"match": [{"uri": {"prefix": "/u/"}}], "directResponse": {"status": 403, "body": {"string": "no"}}}`,
		[]formCall{{path: "/s/M", code: codes.Unavailable}, {path: "/u/M", code: codes.PermissionDenied}, {path: "/t/M", want: "rest"}},
	},
	{
		"what only proxies do",
		`{"corsPolicy": {"allowOrigins": [{"exact": "*"}]}, "mirror": {"host": "b"}, "rewrite": {"uri": "/x", "authority": "y"},
		  "headers": {"request": {"set": {"x": "y"}}}, "match": [{"statPrefix": "s"}], ` + toA + `}`,
		[]formCall{{path: "/s/M", want: "a"}},
	},
	{"retries by default", `{` + toA + `}`, []formCall{{headers: h{"fail": "2"}, want: "a"}, {headers: h{"fail": "3"}, code: codes.Unavailable}}},
	{"one retry", `{"retries": {"attempts": 1}, ` + toA + `}`, []formCall{{headers: h{"fail": "1"}, want: "a"}, {headers: h{"fail": "2"}, code: codes.Unavailable}}},
	{
		"retries on other conditions, with all that there is",
		`{"retries": {"attempts": 2, "retryOn": "503,5xx,cancelled", "perTryTimeout": "1s", "backoff": "0.1s", "retryRemoteLocalities": true}, ` + toA + `}`,
		[]formCall{{headers: h{"fail": "1"}, code: codes.Unavailable}},
	},
	{"no retries", `{"retries": {"attempts": 0}, ` + toA + `}`, []formCall{{headers: h{"fail": "1"}, code: codes.Unavailable}}},
	{"abort", `{"fault": {"abort": {"grpcStatus": "NOT_FOUND", "percentage": {"value": 100}}}, ` + toA + `}`, []formCall{{code: codes.NotFound}}},
	{"abort by HTTP status", `{"fault": {"abort": {"httpStatus": 403, "percentage": {"value": 100}}}, ` + toA + `}`, []formCall{{code: codes.PermissionDenied}}},
	{"abort of nothing", `{"fault": {"abort": {"httpStatus": 403}}, ` + toA + `}`, []formCall{{want: "a"}}},
	{"delay of nothing", `{"fault": {"delay": {"fixedDelay": "60s"}, "abort": {"grpcStatus": "NOT_FOUND", "percentage": {"value": 100}}}, ` + toA + `}`, []formCall{{code: codes.NotFound}}},
	{"a cluster without endpoints", `{"match": [{"uri": {"prefix": "/s/"}}], "route": [{"destination": {"host": "none"}}]}`, []formCall{{path: "/s/M", code: codes.Unavailable}, {path: "/t/M", want: "rest"}}},
	{"a hash of anything", `{` + toA + `}`, []formCall{{want: "a"}}},
	{"weight zero", `{"route": [{"destination": {"host": "a"}, "weight": 0}, {"destination": {"host": "b"}, "weight": 5}]}`, []formCall{{want: "b"}}},
	{"one cluster twice", `{"route": [{"destination": {"host": "a"}, "weight": 3, "headers": {"request": {"set": {"x": "1"}}}}, {"destination": {"host": "a"}, "weight": 5}]}`, []formCall{{want: "a"}}},
	{timed, `{"timeout": "3s", ` + toA + `}`, []formCall{{headers: h{"wait": "9000"}, code: codes.DeadlineExceeded}, {want: "a"}}},
}

// TestRouteForms: our form of rules for gRPC clients is accepted by all of them, with the same
// meaning.
func TestRouteForms(t *testing.T) {
	for _, k := range kinds() {
		t.Run(k.Name, func(t *testing.T) {
			k.Require(t)
			p := startStatic(t)
			a, b, rest := startEcho(t, "a"), startEcho(t, "b"), startEcho(t, "rest")
			p.cluster(t, "a", a.port)
			p.cluster(t, "b", b.port)
			p.cluster(t, "rest", rest.port)
			p.cluster(t, "none")
			client := k.Start(t, p.bootstrap(t))
			var calls []grpccall.Call
			var what []string
			var want []formCall
			together := 0
			for i, tc := range formCases {
				target := p.target(t, fmt.Sprintf("case%d.example.com", i), formRoutes(t, tc))
				if tc.name == timed {
					together = len(calls)
				}
				for _, c := range tc.calls {
					if c.path == "" {
						c.path = "/s/M"
					}
					calls = append(calls, grpccall.Call{Target: target, Path: c.path, Headers: c.headers})
					what, want = append(what, tc.name), append(want, c)
				}
			}
			answers := client.Make(calls[:together]...)
			for _, c := range calls[together:] {
				answers = append(answers, client.Make(c)...)
			}
			for i, got := range answers {
				w := want[i]
				if got.Backend != w.want || got.Code != w.code {
					t.Errorf("%s: %s %v: answered by %q with %s (%s), want %q with %s", what[i], w.path, w.headers, got.Backend, got.Code, got.Error, w.want, w.code)
				}
			}
			if refused := p.refusals(); refused != "" {
				t.Errorf("refused: %s", refused)
			}
			if n := b.calls.Load(); n != 1 {
				t.Errorf("b had %d calls, want the one that it answered", n)
			}
		})
	}
}

// formRoutes are the rules of a case, and one for the rest.
func formRoutes(t *testing.T, tc formCase) []*routev3.Route {
	t.Helper()
	var texts []json.RawMessage
	rest := `, {"route": [{"destination": {"host": "rest"}}]}`
	if strings.HasSuffix(tc.name, alone) {
		rest = ""
	}
	if err := json.Unmarshal([]byte("["+tc.rules+rest+"]"), &texts); err != nil {
		t.Fatalf("%s: %v", tc.name, err)
	}
	var rules []*networking.HTTPRoute
	for _, text := range texts {
		r := &networking.HTTPRoute{}
		if err := protojson.Unmarshal(text, r); err != nil {
			t.Fatalf("%s: %v", tc.name, err)
		}
		rules = append(rules, r)
	}
	scope := &xdsbuild.RouteScope{
		Client: envoy.ForGRPC, Port: 80, ServiceCluster: "rest",
		Cluster: func(d *networking.Destination) string { return d.GetHost() },
	}
	if tc.name == "a hash of anything" {
		scope.ConsistentHash = func(*networking.Destination) *networking.LoadBalancerSettings_ConsistentHashLB {
			return &networking.LoadBalancerSettings_ConsistentHashLB{HashKey: &networking.LoadBalancerSettings_ConsistentHashLB_HttpCookie{
				HttpCookie: &networking.LoadBalancerSettings_ConsistentHashLB_HTTPCookie{Name: "c"},
			}}
		}
	}
	return scope.Routes(rules)
}
