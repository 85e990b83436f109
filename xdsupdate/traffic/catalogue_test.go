// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/internal/envoycheck"
	"github.com/pilotkit/pilotkit/internal/test/envoyproxy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// refusal is an object over which an Envoy would refuse what others share with it, or
// which would cost it much.
type refusal struct {
	kind, spec string
	// field is what validation refuses.
	field string
	// leftOut is the field that is reported where nothing validates; "": the generators
	// make it harmless.
	leftOut string
}

// refusals is the catalogue of what Envoys refuse although their generated validation
// accepts it.
func refusals() map[string]refusal {
	out := make(map[string]refusal)
	route := func(name, rule, field string) {
		out[name] = refusal{
			"VirtualService", `{"hosts":["evil.example.com"],"gateways":["mesh","ingress/edge"],"http":[{` + rule + `,"route":[{"destination":{"host":"evil.example.com"}}]}]}`,
			"spec.http[0]." + field, "spec.http[0]",
		}
	}
	for _, value := range []string{"%FOO%", "%REQ%", "%REQ()%", "%HOSTNAME(a)%", "%PROTOCOL:2%", "%CEL(1+)%", "%FILE_CONTENT(x)%", "%METADATA(FOO:a:b)%", "%REQ(a?b?c)%", "%REQ(é)%", "50% off"} {
		route("a header of requests, "+value, `"headers":{"request":{"set":{"x-a":"`+value+`"}}}`, "headers.request.set[x-a]")
		route("a header of responses, "+value, `"headers":{"response":{"add":{"x-a":"`+value+`"}}}`, "headers.response.add[x-a]")
	}
	for _, regex := range []string{`\\p{Letter}`, `\\p{ASCII}`, `\\p{Cn}`, `\\p{LC}`, `\\p{greek}`, `\\x{100}`, strings.Repeat("a{1000}", 40)} {
		name := fmt.Sprintf(", %.20s", regex)
		route("a path"+name, `"match":[{"uri":{"regex":"`+regex+`"}}]`, "match[0].uri.regex")
		route("a header"+name, `"match":[{"headers":{"x-a":{"regex":"`+regex+`"}}}]`, "match[0].headers[x-a].regex")
		route("a query"+name, `"match":[{"queryParams":{"q":{"regex":"`+regex+`"}}}]`, "match[0].queryParams[q].regex")
		route("an origin"+name, `"corsPolicy":{"allowOrigins":[{"regex":"`+regex+`"}]}`, "corsPolicy.allowOrigins[0].regex")
		route("a rewrite"+name, `"rewrite":{"uriRegexRewrite":{"match":"`+regex+`","rewrite":"/a"}}`, "rewrite.uriRegexRewrite.match")
	}
	route("a long query parameter", `"match":[{"queryParams":{"`+strings.Repeat("q", 1025)+`":{"exact":"a"}}}]`, "match[0].queryParams")
	route("a rewritten path with a line feed", `"rewrite":{"uri":"/a\nb"}`, "rewrite.uri")
	route("a rewritten host with NUL", `"rewrite":{"authority":"a\u0000b"}`, "rewrite.authority")
	for _, field := range []string{"timeout", "retries.perTryTimeout", "retries.backoff", "fault.delay.fixedDelay"} {
		parts := strings.Split(field, ".")
		text := `"9223372036s"`
		for _, part := range slices.Backward(parts) {
			text = `{"` + part + `":` + text + `}`
			if part == "perTryTimeout" || part == "backoff" {
				text = strings.Replace(text, "{", `{"attempts":1,`, 1)
			}
		}
		route("a long "+field, text[1:len(text)-1], field)
		r := out["a long "+field]
		r.leftOut = ""
		out["a long "+field] = r
	}
	rule := func(name, policy, field, leftOut string) {
		out[name] = refusal{"DestinationRule", `{"host":"evil.example.com","trafficPolicy":{` + policy + `}}`, "spec.trafficPolicy." + field, leftOut}
	}
	rule("a long time to connect", `"connectionPool":{"tcp":{"connectTimeout":"9223372036s"}}`, "connectionPool.tcp.connectTimeout", "")
	rule("a long interval", `"outlierDetection":{"interval":"9223372036s"}`, "outlierDetection.interval", "")
	rule("a long server name", `"tls":{"mode":"SIMPLE","sni":"`+strings.Repeat("a", 256)+`"}`, "tls.sni", "spec.trafficPolicy")
	rule("a server name with NUL", `"tls":{"mode":"SIMPLE","sni":"a\u0000b"}`, "tls.sni", "spec.trafficPolicy")
	rule("a large ring", `"loadBalancer":{"consistentHash":{"httpHeaderName":"x","ringHash":{"minimumRingSize":"8388608"}}}`, "loadBalancer.consistentHash.ringHash.minimumRingSize", "")
	rule("a table without a prime", `"loadBalancer":{"consistentHash":{"httpHeaderName":"x","maglev":{"tableSize":"65536"}}}`, "loadBalancer.consistentHash.maglev.tableSize", "")
	server := func(name, text, field, leftOut string) {
		out[name] = refusal{"Gateway", `{"selector":{"app":"edge"},"servers":[{"hosts":["evil.example.com"],` + text + `}]}`, "spec.servers[0]." + field, leftOut}
	}
	const tls = `"port":{"number":8443,"name":"evil","protocol":"HTTPS"},"tls":{"mode":"MUTUAL","credentialName":"a",`
	server("a hash with colons elsewhere", tls+`"verifyCertificateHash":["0:f`+strings.Repeat("0f:", 30)+`0f"]}`, "tls.verifyCertificateHash[0]", "spec.servers[0]")
	server("a key that is no hash", tls+`"verifyCertificateSpki":["AAAA"]}`, "tls.verifyCertificateSpki[0]", "spec.servers[0]")
	for _, bind := range []string{"224.0.0.1", "ff02::1", "fe80::1%eth0", `10.0.0.1\u0000`, "a.example.com"} {
		server("a bind, "+bind, `"port":{"number":8080,"name":"evil","protocol":"HTTP"},"bind":"`+bind+`"`, "bind", "spec.servers[0].bind")
	}
	return out
}

// TestCatalogue: what Envoys are known to refuse is refused by validation, with its
// field; where nothing validates it is left out, and reported, or made harmless, and
// nothing of a neighbour changes. All supported Envoys take what is sent instead.
func TestCatalogue(t *testing.T) {
	base, _, _ := newMultiplying(t).partsOf(newMultiplying(t).stage(traffic.Limits{}), "good")
	var routes []*routev3.RouteConfiguration
	var clusters []*clusterv3.Cluster
	var of []string
	for name, r := range refusals() {
		m := newMultiplying(t)
		m.service("evil", "evil.example.com", 80)
		m.object(r.kind, "evil/o", r.spec)
		validated(t, name, m.configs[len(m.configs)-1], r.field)
		s := m.stage(traffic.Limits{})
		got, _, _ := m.partsOf(s, "good")
		for key, part := range base {
			if got[key] != part {
				t.Errorf("%s: %s is another", name, key)
			}
		}
		if r.leftOut != "" && s.reason("o", r.leftOut) == "" {
			t.Errorf("%s: ineffective is %v", name, s.ineffective())
		}
		m.each(s, edge(), func(_, _ string, resource proto.Message, _ string) {
			switch resource := resource.(type) {
			case *routev3.RouteConfiguration:
				routes, of = append(routes, resource), append(of, name)
			case *clusterv3.Cluster:
				if strings.Contains(resource.GetName(), "evil") {
					clusters = append(clusters, resource)
				}
			}
		})
	}
	for _, c := range clusters {
		if err := envoycheck.Envoy(c); err != nil {
			t.Error(err)
		}
	}
	if testing.Short() {
		return
	}
	for _, program := range envoyproxy.Programs(t) {
		for i, verdict := range envoyproxy.RouteVerdicts(t, envoyproxy.Options{Program: program, Runtime: envoyproxy.RegexProgramSize(32768)}, routes) {
			if verdict != "" {
				t.Errorf("%s: %s refuses what is sent: %s", of[i], program, verdict)
			}
		}
	}
}

// validated demands that validation refuses an object, and names a field.
func validated(t *testing.T, name string, c *configstore.Config, field string) {
	t.Helper()
	schema, _ := istio.Schemas().Find(c.GroupVersionKind)
	_, err := schema.Check(*c)
	if err == nil || !strings.Contains(err.Error(), field) {
		t.Errorf("%s: validation says %v, want %s", name, err, field)
	}
}
