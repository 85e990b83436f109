// SPDX-License-Identifier: Apache-2.0

package envoycheck_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/internal/envoycheck"
	"github.com/pilotkit/pilotkit/internal/test/envoyproxy"
)

// sample is a resource, and whether Envoys accept it.
type sample struct {
	name  string
	text  string
	taken bool
}

// TestEnvoyAgrees: of resources that differ from valid ones in one value, all supported releases
// reject exactly the rejected ones.
func TestEnvoyAgrees(t *testing.T) {
	source := filepath.Join(t.TempDir(), "secrets.json")
	if err := os.WriteFile(source, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	routes, listeners, clusters := routeSamples(), listenerSamples(source), clusterSamples()
	for _, program := range envoyproxy.Programs(t) {
		o := envoyproxy.Options{Program: program, Runtime: envoyproxy.RegexProgramSize(32768)}
		rs := parse(t, routes, func() *routev3.RouteConfiguration { return &routev3.RouteConfiguration{} })
		judge(t, routes, rs, envoyproxy.RouteVerdicts(t, o, rs))
		ls := parse(t, listeners, func() *listenerv3.Listener { return &listenerv3.Listener{} })
		judge(t, listeners, ls, envoyproxy.ListenerVerdicts(t, o, ls))
		cs := parse(t, clusters, func() *clusterv3.Cluster { return &clusterv3.Cluster{} })
		judge(t, clusters, cs, clusterVerdicts(t, o, cs))
	}
}

func parse[M proto.Message](t *testing.T, samples []sample, empty func() M) []M {
	t.Helper()
	out := make([]M, len(samples))
	for i, s := range samples {
		out[i] = empty()
		if err := protojson.Unmarshal([]byte(s.text), out[i]); err != nil {
			t.Fatalf("%s: %v: %s", s.name, err, s.text)
		}
	}
	return out
}

func judge[M proto.Message](t *testing.T, samples []sample, resources []M, verdicts []string) {
	t.Helper()
	for i, s := range samples {
		if err := envoycheck.Envoy(resources[i]); (err == nil) != s.taken {
			t.Errorf("%s: %v", s.name, err)
		}
		if (verdicts[i] == "") != s.taken {
			t.Errorf("%s: Envoy says %q", s.name, verdicts[i])
		}
	}
}

func clusterVerdicts(t *testing.T, o envoyproxy.Options, clusters []*clusterv3.Cluster) []string {
	t.Helper()
	out := make([]string, len(clusters))
	for i, c := range clusters {
		b, err := envoyproxy.Bootstrap(o)
		if err != nil {
			t.Fatal(err)
		}
		b.StaticResources.Clusters = []*clusterv3.Cluster{c}
		if err := envoyproxy.Validate(t, o.Program, b); err != nil {
			out[i] = err.Error()
		}
	}
	return out
}

func routeSamples() []sample {
	match := func(text string) string { return route(`"match":{` + text + `},"directResponse":{"status":200}`) }
	forward := func(text string) string { return route(`"match":{"prefix":"/"},"route":{"cluster":"c",` + text + `}`) }
	value := func(text string) string { return `"` + strings.ReplaceAll(text, `"`, `\"`) + `"` }
	header := func(v string) string {
		return route(`"match":{"prefix":"/"},"route":{"weightedClusters":{"clusters":[{"name":"c","weight":1,"responseHeadersToAdd":[{"header":{"key":"a","value":` + value(v) + `}}]}]}}`)
	}
	out := []sample{
		{"header", header("%REQ(:path?x)% %DOWNSTREAM_TLS_VERSION% 100%%"), true},
		{"header with an unknown command", header("%FOO%"), false},
		{"header with CEL", header("%CEL(1+)%"), false},
		{"query", match(`"prefix":"/","queryParameters":[{"name":"` + strings.Repeat("q", 1024) + `","presentMatch":true}]`), true},
		{"long query", match(`"prefix":"/","queryParameters":[{"name":"` + strings.Repeat("q", 1025) + `","presentMatch":true}]`), false},
		{"regex", match(`"safeRegex":{"regex":"/\\p{Lu}[a-z]{1,64}"}`), true},
		{"regex of Go", match(`"safeRegex":{"regex":"\\p{Letter}"}`), false},
		{"regex of a query", match(`"prefix":"/","queryParameters":[{"name":"q","stringMatch":{"safeRegex":{"regex":"\\p{greek}"}}}]`), false},
		{"large regex", match(`"safeRegex":{"regex":"(?:a{1000}){1}` + strings.Repeat("b{1000}", 40) + `"}`), false},
		{"rewrite", forward(`"prefixRewrite":"/é b"`), true},
		{"rewrite with a line feed", forward(`"prefixRewrite":"/a\nb"`), false},
		{"host rewrite with NUL", forward(`"hostRewriteLiteral":"a\u0000b"`), false},
		{"regex rewrite", forward(`"regexRewrite":{"pattern":{"regex":"^/(a)"},"substitution":"\\1\\9"}`), true},
	}
	for _, f := range []string{
		`"timeout":%q`, `"retryPolicy":{"retryOn":"5xx","perTryTimeout":%q}`, `"retryPolicy":{"retryOn":"5xx","retryBackOff":{"baseInterval":%q}}`,
		`"hashPolicy":[{"cookie":{"name":"a","ttl":%q}}]`, `"maxStreamDuration":{"grpcTimeoutHeaderMax":%q}`,
	} {
		for text, taken := range map[string]bool{"9223372035.999s": true, "9223372036s": false, "315576000000s": false} {
			text = fmt.Sprintf(f, text)
			out = append(out, sample{text, forward(text), taken})
		}
	}
	return out
}

func listenerSamples(secrets string) []sample {
	source := `{"resourceApiVersion":"V3","pathConfigSource":{"path":"` + secrets + `"}}`
	hash := strings.Repeat("0f", 32)
	colons := strings.TrimSuffix(strings.Repeat("0F:", 32), ":")
	const key = "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="
	tls := func(validation string) string {
		return `{"filterChains":[{` + proxyTo("c") + `,"transportSocket":{"name":"tls","typedConfig":{"@type":"` + types + `transport_sockets.tls.v3.DownstreamTlsContext",
			"requireClientCertificate":true,"commonTlsContext":{"tlsCertificateSdsSecretConfigs":[{"name":"default","sdsConfig":` + source + `}],
			"combinedValidationContext":{"validationContextSdsSecretConfig":{"name":"ROOTCA","sdsConfig":` + source + `},"defaultValidationContext":{` + validation + `}}}}}}]`
	}
	unbound := `,"bindToPort":false,"address":{"socketAddress":{"address":"127.0.0.1","portValue":9}}}`
	at := func(address string) string {
		return `{"filterChains":[{` + proxyTo("c") + `}],"address":{"socketAddress":{"address":"` + address + `","portValue":0}}}`
	}
	return []sample{
		{"hash", tls(`"verifyCertificateHash":["`+hash+`","`+colons+`"],"verifyCertificateSpki":["`+key+`"]`) + unbound, true},
		{"short hash", tls(`"verifyCertificateHash":["`+hash[2:]+`"]`) + unbound, false},
		{"hash with a letter", tls(`"verifyCertificateHash":["g`+hash[1:]+`"]`) + unbound, false},
		{"hash with one colon", tls(`"verifyCertificateHash":["0f:`+hash[2:]+`"]`) + unbound, false},
		{"short key", tls(`"verifyCertificateSpki":["AAAA"]`) + unbound, false},
		{"key without padding", tls(`"verifyCertificateSpki":["`+key[:43]+`"]`) + unbound, false},
		{"address", at("127.0.0.1"), true},
		{"all addresses", at("0.0.0.0"), true},
		{"all addresses of IPv6", at("::"), true},
		{"a multicast address of IPv6", at("ff02::1"), false},
		{"a zone", at("fe80::1%eth0"), false},
		{"no address", at("a.example.com"), false},
	}
}

func proxyTo(cluster string) string {
	return `"filters":[{"name":"t","typedConfig":{"@type":"` + types + `filters.network.tcp_proxy.v3.TcpProxy","statPrefix":"s","cluster":"` + cluster + `"}}]`
}

func clusterSamples() []sample {
	static := `"name":"c","type":"STATIC","loadAssignment":{"clusterName":"c"}`
	sni := func(name string) string {
		text, _ := json.Marshal(name)
		return `{` + static + `,"transportSocket":{"name":"envoy.transport_sockets.tls","typedConfig":{"@type":"` + types + `transport_sockets.tls.v3.UpstreamTlsContext","sni":` + string(text) + `}}}`
	}
	return []sample{
		{"server name", sni(strings.Repeat("a", 255)), true},
		{"long server name", sni(strings.Repeat("a", 256)), false},
		{"server name with NUL", sni("a\x00b"), false},
		{"time to connect", `{` + static + `,"connectTimeout":"9223372035s"}`, true},
		{"long time to connect", `{` + static + `,"connectTimeout":"9223372036s"}`, false},
		{"ring", `{` + static + `,"lbPolicy":"RING_HASH","ringHashLbConfig":{"minimumRingSize":1024}}`, true},
		{"maglev", `{` + static + `,"lbPolicy":"MAGLEV","maglevLbConfig":{"tableSize":65537}}`, true},
		{"maglev without a prime", `{` + static + `,"lbPolicy":"MAGLEV","maglevLbConfig":{"tableSize":65536}}`, false},
	}
}
