// SPDX-License-Identifier: Apache-2.0

package headerformat_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/pilotkit/pilotkit/internal/envoycheck/headerformat"
	"github.com/pilotkit/pilotkit/internal/test/envoyproxy"
	"github.com/pilotkit/pilotkit/internal/test/tier"
)

// TestEnvoyAgrees compares Check with all supported releases, for the tables and for random
// commands, in headers of requests and of responses. All releases accept an accepted value, and at
// least one rejects a rejected value, unless the reason is one of isStricter.
func TestEnvoyAgrees(t *testing.T) {
	values := append(accepted(), refused()...)
	values = append(values, stricter()...)
	random := rand.New(rand.NewPCG(1, 2))
	for range tier.Share(4000) {
		values = append(values, randomValue(random))
	}
	var verdicts [][]string
	for _, program := range envoyproxy.Programs(t) {
		verdicts = append(verdicts, ask(t, program, values))
	}
	agreed := 0
	for i, value := range values {
		envoys := ""
		for _, v := range verdicts {
			if envoys == "" {
				envoys = v[i]
			}
		}
		switch err := headerformat.Check(value); {
		case err == nil && envoys != "":
			t.Errorf("%q is accepted; Envoy: %s", value, envoys)
		case err != nil && envoys == "" && tier.Full() && // older releases refuse it
			!slices.Contains(stricter(), value) && !isStricter(err):
			t.Errorf("%q is refused, %v; Envoy accepts it", value, err)
		case err == nil:
			agreed++
		}
	}
	if agreed < len(values)/10 {
		t.Errorf("only %d of %d values are accepted: there is little to compare", agreed, len(values))
	}
}

// isStricter reports whether a value may be rejected although Envoys accept it.
func isStricter(err error) bool {
	for _, reason := range []string{"only attributes are supported", "an attribute has at most", "the key of an attribute", "a list in JSON", "(estimated)"} {
		if strings.Contains(err.Error(), reason) {
			return true
		}
	}
	return false
}

func ask(t *testing.T, program envoyproxy.Program, values []string) []string {
	t.Helper()
	routes := make([]*routev3.RouteConfiguration, len(values))
	for i, value := range values {
		add := []*core.HeaderValueOption{{Header: &core.HeaderValue{Key: "x-a", Value: value}}}
		route := &routev3.Route{
			Match:  &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/"}},
			Action: &routev3.Route_DirectResponse{DirectResponse: &routev3.DirectResponseAction{Status: 200}},
		}
		if i%2 == 0 {
			route.RequestHeadersToAdd = add
		} else {
			route.ResponseHeadersToAdd = add
		}
		routes[i] = &routev3.RouteConfiguration{
			Name: "r", VirtualHosts: []*routev3.VirtualHost{{Name: "v", Domains: []string{"*"}, Routes: []*routev3.Route{route}}},
		}
	}
	return envoyproxy.RouteVerdicts(t, envoyproxy.Options{Program: program}, routes)
}

// randomValue returns text with a command whose parts mostly match.
func randomValue(random *rand.Rand) string {
	pick := func(list []string) string { return list[random.IntN(len(list))] }
	names := []string{
		"REQ", "RESP", "TRAILER", "STREAM_INFO_REQ", "QUERY_PARAM", "CLUSTER_METADATA", "UPSTREAM_METADATA", "DYNAMIC_METADATA",
		"METADATA", "FILTER_STATE", "UPSTREAM_FILTER_STATE", "PER_REQUEST_STATE", "START_TIME", "EMIT_TIME_LOCAL", "DOWNSTREAM_PEER_CERT_V_END",
		"COMMON_DURATION", "RESPONSE_CODE_DETAILS", "GRPC_STATUS", "PATH", "XFCC_VALUE", "CEL", "HOSTNAME", "PROTOCOL",
		"DOWNSTREAM_PEER_CERT", "FOO", "LISTENER_NAME", "Req", "",
	}
	parts := []string{
		"a", "b", "x-y", ":path", ":", "?", "%", "%%", "%n", "%Y", "%5n", "%En", "(", ")", ")%", "[", "]", `"a"`, `["a","b"]`, `[""]`, "[]", " ", "é",
		"DYNAMIC", "ROUTE", "PLAIN", "FIELD", "TYPED", "ms", "us", "WQ", "NQ", "ORIG", "PATH", "NUMBER", "uri", "By", ".", ",", "+", "-", "!", "1", "1u", "'x'",
		"a.b", "request.headers", "['a']", "in", "{", "}", "true",
	}
	var b strings.Builder
	b.WriteString(pick([]string{"", "", "x ", "%% ", "%HOSTNAME%", "é"}))
	b.WriteString("%" + pick(names))
	if random.IntN(8) > 0 {
		b.WriteString("(")
		for range random.IntN(5) {
			b.WriteString(pick(parts))
		}
		b.WriteString(")")
	}
	b.WriteString(pick([]string{"", "", "", "", ":5", ":0", ":", ":99999999999999999999"}))
	b.WriteString(pick([]string{"%", "%", "%", "%", "%", "%", "% y", "%%", ""}))
	return b.String()
}
