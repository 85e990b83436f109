// SPDX-License-Identifier: Apache-2.0

package envoycheck_test

import (
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/fault/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/pilotkit/pilotkit/internal/envoycheck"
	"github.com/pilotkit/pilotkit/internal/test/testmain"
)

func TestMain(m *testing.M) { testmain.Verify(m) }

const (
	ads   = `{"ads":{},"resourceApiVersion":"V3"}`
	types = "type.googleapis.com/envoy.extensions."
	eds   = `"name":"c","type":"EDS","edsClusterConfig":{"edsConfig":` + ads + `}`

	router  = `{"name":"envoy.filters.http.router","typedConfig":{"@type":"` + types + `filters.http.router.v3.Router"}}`
	manager = `"@type":"` + types + `filters.network.http_connection_manager.v3.HttpConnectionManager","statPrefix":"s",` +
		`"rds":{"routeConfigName":"r","configSource":` + ads + `}`
	proxy = `"filters":[{"name":"t","typedConfig":{"@type":"` + types + `filters.network.tcp_proxy.v3.TcpProxy","statPrefix":"s","cluster":"c"}}]`
	bound = `"name":"l","address":{"socketAddress":{"address":"0.0.0.0","portValue":80}}`
)

func lb(address, port string) string {
	return `{"endpoint":{"address":{"socketAddress":{"address":"` + address + `","portValue":` + port + `}}}}`
}

func options(text string) string {
	return `,"typedExtensionProtocolOptions":{"envoy.extensions.upstreams.http.v3.HttpProtocolOptions":{"@type":"` +
		types + `upstreams.http.v3.HttpProtocolOptions"` + text + `}}`
}

func rbacRule(permission, principal string) string {
	return `{"permissions":[{` + permission + `}],"principals":[{` + principal + `}]}`
}

func route(text string) string {
	return `{"name":"r","virtualHosts":[{"name":"v","domains":["*"],"routes":[{` + text + `}]}]}`
}

// TestTeeth: each rule detects its error in an otherwise valid resource.
func TestTeeth(t *testing.T) {
	assignment := func(localities string) string { return `{"clusterName":"c","endpoints":[` + localities + `]}` }
	locality := func(more string) string {
		return `{"locality":{"region":"r"},"loadBalancingWeight":1` + more + `}`
	}
	const forward = `,"route":{"cluster":"c"}`
	tests := []struct {
		name  string
		m     proto.Message
		text  string
		envoy string // "": right
		grpc  string
	}{
		{"cluster", &clusterv3.Cluster{}, `{` + eds + `}`, "", ""},
		{"cluster without a source", &clusterv3.Cluster{}, `{"name":"c","type":"EDS"}`, "eds_cluster_config false", "eds_cluster_config false"},
		{"original destination", &clusterv3.Cluster{}, `{"name":"c","type":"ORIGINAL_DST","lbPolicy":"CLUSTER_PROVIDED"}`, "", "type ORIGINAL_DST for gRPC"},
		{"original destination, balanced", &clusterv3.Cluster{}, `{"name":"c","type":"ORIGINAL_DST"}`, "balancing ROUND_ROBIN", "balancing ROUND_ROBIN"},
		{"random", &clusterv3.Cluster{}, `{` + eds + `,"lbPolicy":"RANDOM"}`, "", "balancing RANDOM"},
		{"ring", &clusterv3.Cluster{}, `{` + eds + `,"lbPolicy":"RING_HASH","ringHashLbConfig":{"minimumRingSize":9000000}}`, "less than or equal to 8388608", "ring of 9000000"},
		{"ring of another policy", &clusterv3.Cluster{}, `{` + eds + `,"ringHashLbConfig":{}}`, "configuration of RING_HASH", "configuration of RING_HASH"},
		{"maglev", &clusterv3.Cluster{}, `{` + eds + `,"lbPolicy":"MAGLEV","maglevLbConfig":{"tableSize":100}}`, "a maglev table of 100", "a maglev table of 100"},
		{
			"two DNS endpoints", &clusterv3.Cluster{},
			`{"name":"c","type":"LOGICAL_DNS","loadAssignment":` + assignment(locality(`,"lbEndpoints":[`+lb("a.com", "80")+`,`+lb("b.com", "80")+`]`)) + `}`,
			"LOGICAL_DNS with 2", "LOGICAL_DNS with 2",
		},
		{"DNS without endpoints", &clusterv3.Cluster{}, `{"name":"c","type":"STRICT_DNS"}`, "DNS without endpoints", "type STRICT_DNS"},
		{"options without protocol", &clusterv3.Cluster{}, `{` + eds + options("") + `}`, "is required", "is required"},
		{
			"auto names", &clusterv3.Cluster{},
			`{` + eds + options(`,"explicitHttpConfig":{"httpProtocolOptions":{}},"upstreamHttpProtocolOptions":{"autoSanValidation":true}`) + `}`,
			"auto_san_validation without auto_sni", "auto_san_validation without auto_sni",
		},
		{
			"secrets", &clusterv3.Cluster{},
			`{` + eds + `,"transportSocket":{"name":"envoy.transport_sockets.tls","typedConfig":{"@type":"` + types + `transport_sockets.tls.v3.UpstreamTlsContext",
				"commonTlsContext":{"tlsCertificateSdsSecretConfigs":[{"name":"default"}]}}}}`,
			"", "secrets for gRPC",
		},
		{"sockets", &clusterv3.Cluster{}, `{` + eds + `,"transportSocketMatches":[{"name":"a","match":{}},{"name":"a","match":{}}]}`, `"a" twice`, "matches for gRPC"},

		{"assignment", &endpointv3.ClusterLoadAssignment{}, assignment(locality(`,"lbEndpoints":[` + lb("10.0.0.1", "80") + `]`)), "", ""},
		{"a locality that is nil", &endpointv3.ClusterLoadAssignment{}, assignment(`{"loadBalancingWeight":1}`), "is nil", "is nil"},
		{"no weight", &endpointv3.ClusterLoadAssignment{}, assignment(`{"locality":{}}`), "without weight", "without weight"},
		{"a gap", &endpointv3.ClusterLoadAssignment{}, assignment(locality(`,"priority":1`)), "1 priorities, but not 0", "1 priorities, but not 0"},
		{"a locality twice", &endpointv3.ClusterLoadAssignment{}, assignment(locality("") + `,` + locality("")), "twice", "twice"},
		{
			"an address twice", &endpointv3.ClusterLoadAssignment{},
			assignment(locality(`,"lbEndpoints":[` + lb("10.0.0.1", "80") + `,` + lb("::ffff:10.0.0.1", "80") + `]`)), "10.0.0.1:80 twice", "10.0.0.1:80 twice",
		},
		{
			"an address in two localities", &endpointv3.ClusterLoadAssignment{},
			assignment(locality(`,"lbEndpoints":[`+lb("10.0.0.1", "80")+`]`) + `,{"locality":{},"loadBalancingWeight":1,"lbEndpoints":[` + lb("10.0.0.1", "80") + `]}`),
			"", "10.0.0.1:80 twice",
		},
		{"a name", &endpointv3.ClusterLoadAssignment{}, assignment(locality(`,"lbEndpoints":[` + lb("a.com", "80") + `]`)), "not an IP address", "not an IP address"},
		{
			"a socket", &endpointv3.ClusterLoadAssignment{}, assignment(locality(`,"lbEndpoints":[{"endpoint":{"address":{"pipe":{"path":"/run/s"}}}}]`)),
			"", "a unix socket",
		},
		{
			"a long socket", &endpointv3.ClusterLoadAssignment{},
			assignment(locality(`,"lbEndpoints":[{"endpoint":{"address":{"pipe":{"path":"/` + strings.Repeat("a", 107) + `"}}}}]`)), "108 bytes", "108 bytes",
		},
		{
			"large weights", &endpointv3.ClusterLoadAssignment{},
			assignment(`{"locality":{},"loadBalancingWeight":4294967295},` + locality("")), "exceed 32 bits", "exceed 32 bits",
		},

		{"routes", &routev3.RouteConfiguration{}, route(`"match":{"prefix":"/"}` + forward), "", ""},
		{"no action", &routev3.RouteConfiguration{}, route(`"match":{"prefix":"/"}`), "is required", "no action"},
		{
			"a domain twice", &routev3.RouteConfiguration{},
			`{"name":"r","virtualHosts":[{"name":"a","domains":["a.com"]},{"name":"b","domains":["A.com"]}]}`, `in "a" and "b"`, `in "a" and "b"`,
		},
		{"a domain with an asterisk inside", &routev3.RouteConfiguration{}, `{"name":"r","virtualHosts":[{"name":"a","domains":["a.*.com"]}]}`, `domain "a.*.com"`, "domain"},
		{"a virtual host twice", &routev3.RouteConfiguration{}, `{"name":"r","virtualHosts":[{"name":"a","domains":["a"]},{"name":"a","domains":["b"]}]}`, `"a" twice`, "twice"},
		{"a regex", &routev3.RouteConfiguration{}, route(`"match":{"safeRegex":{"regex":"("}}` + forward), "missing closing", "missing closing"},
		{
			"weights", &routev3.RouteConfiguration{}, route(`"match":{"prefix":"/"},"route":{"weightedClusters":{"clusters":[{"name":"c","weight":0}]}}`),
			"sum of the weights is 0", "sum of the weights",
		},
		{
			"large weights of clusters", &routev3.RouteConfiguration{},
			route(`"match":{"prefix":"/"},"route":{"weightedClusters":{"clusters":[{"name":"c","weight":4294967295},{"name":"d","weight":1}]}}`),
			"sum of the weights is 4294967296", "4294967296",
		},
		{
			"a command", &routev3.RouteConfiguration{},
			route(`"match":{"prefix":"/"},"requestHeadersToAdd":[{"header":{"key":"a","value":"100%% %a"}}]` + forward), "find valid command at position 6", "find valid command",
		},
		{
			"a command that is none", &routev3.RouteConfiguration{},
			route(`"match":{"prefix":"/"},"responseHeadersToAdd":[{"header":{"key":"a","value":"%FOO%"}}]` + forward), "header a: %FOO%: Not supported field", "%FOO%",
		},
		{"a duration", &routev3.RouteConfiguration{}, route(`"match":{"prefix":"/"},"route":{"cluster":"c","timeout":"9223372035.999s"}`), "", ""},
		{"a long duration", &routev3.RouteConfiguration{}, route(`"match":{"prefix":"/"},"route":{"cluster":"c","timeout":"9223372036s"}`), "Duration out-of-range", "out-of-range"},
		{"a long duration of a cluster", &clusterv3.Cluster{}, `{` + eds + `,"connectTimeout":"9223372036s"}`, "Duration out-of-range: 9223372036s", "out-of-range"},
		{"a regex of Go", &routev3.RouteConfiguration{}, route(`"match":{"safeRegex":{"regex":"\\p{Letter}"}}` + forward), "invalid character class range", "invalid character class"},
		{
			"a regex in a query", &routev3.RouteConfiguration{}, route(`"match":{"prefix":"/","queryParameters":[{"name":"q","stringMatch":{"safeRegex":{"regex":"a{1000}b{1000}"}}},
				{"name":"r","stringMatch":{"safeRegex":{"regex":"(?:a{100}){100}"}}}]}` + forward), "(?:a{100}){100}", "(?:a{100}){100}",
		},
		{
			"a regex that is packed", &routev3.RouteConfiguration{},
			route(`"match":{"prefix":"/"},"typedPerFilterConfig":{"f":{"@type":"` + types + `filters.http.fault.v3.HTTPFault","headers":[{"name":"a","stringMatch":{"safeRegex":{"regex":"\\x{100}"}}}]}}` + forward),
			"invalid escape sequence", "invalid escape sequence",
		},
		{"a body", &routev3.RouteConfiguration{}, route(`"match":{"prefix":"/"},"directResponse":{"status":200,"body":{"inlineString":"` + strings.Repeat("a", 4097) + `"}}`), "4097 bytes", "direct responses"},
		{"a redirect", &routev3.RouteConfiguration{}, route(`"match":{"prefix":"/"},"redirect":{"hostRedirect":"a"}`), "", "neither redirects"},
		{"a string match", &routev3.RouteConfiguration{}, route(`"match":{"prefix":"/","headers":[{"name":"a","stringMatch":{"exact":"b"}}]}` + forward), "", "C-core"},
		{"an absent header", &routev3.RouteConfiguration{}, route(`"match":{"prefix":"/","headers":[{"name":"a","presentMatch":false}]}` + forward), "", "inverts"},
		{"a query", &routev3.RouteConfiguration{}, route(`"match":{"prefix":"/","queryParameters":[{"name":"a","presentMatch":true}]}` + forward), "", "query"},
		{
			"what is packed", &routev3.RouteConfiguration{},
			route(`"match":{"prefix":"/"},"typedPerFilterConfig":{"f":{"@type":"` + types + `filters.http.fault.v3.HTTPFault","abort":{"httpStatus":42}}}` + forward),
			"[200, 600)", "[200, 600)",
		},

		{"RBAC", &rbacv3.Policy{}, rbacRule(`"urlPath":{"path":{"exact":"/a"}}`, `"header":{"name":"a","exactMatch":"b"}`), "", ""},
		{"a template", &rbacv3.Policy{}, rbacRule(`"uriTemplate":{"name":"a","typedConfig":{"@type":"`+types+`filters.http.router.v3.Router"}}`, `"any":true`), "", "a permission of type"},
		{"a reserved header", &rbacv3.Policy{}, rbacRule(`"any":true`, `"andIds":{"ids":[{"notId":{"header":{"name":"Grpc-A","exactMatch":"b"}}}]}`), "", "the header grpc-a"},
		{"a string match of RBAC", &rbacv3.Policy{}, rbacRule(`"any":true`, `"header":{"name":"a","stringMatch":{"exact":"b"}}`), "", "a header match of type"},
		{"sourced metadata", &rbacv3.Policy{}, rbacRule(`"any":true`, `"sourcedMetadata":{"metadataMatcher":{"filter":"f","path":[{"key":"a"}],"value":{"presentMatch":true}}}`), "", "a principal of type"},

		{"API listener", &listenerv3.Listener{}, `{"name":"l","apiListener":{"apiListener":{` + manager + `,"httpFilters":[` + router + `]}}}`, "", ""},
		{"no filters", &listenerv3.Listener{}, `{"name":"l","apiListener":{"apiListener":{` + manager + `}}}`, "without filters", "without filters"},
		{"two routers", &listenerv3.Listener{}, `{"name":"l","apiListener":{"apiListener":{` + manager + `,"httpFilters":[` + router + `,` + router + `]}}}`, "HTTP filter 1 of 2", "HTTP filter"},
		{"listener", &listenerv3.Listener{}, `{` + bound + `,"filterChains":[{` + proxy + `}]}`, "", "no HTTP connection manager"},
		{"no chains", &listenerv3.Listener{}, `{` + bound + `}`, "no filter chain", "no filter chain"},
		{"one match", &listenerv3.Listener{}, `{` + bound + `,"filterChains":[{` + proxy + `},{"filterChainMatch":{},` + proxy + `}]}`, "have one match", "have one match"},
		{
			"one server name", &listenerv3.Listener{},
			`{` + bound + `,"listenerFilters":[{"name":"envoy.filters.listener.tls_inspector"}],"filterChains":[
				{"filterChainMatch":{"serverNames":["a","b"]},` + proxy + `},{"filterChainMatch":{"serverNames":["b"]},` + proxy + `}]}`,
			"have one match", "have one match",
		},
		{"no inspector", &listenerv3.Listener{}, `{` + bound + `,"filterChains":[{"filterChainMatch":{"serverNames":["a"]},` + proxy + `}]}`, "nothing reads them", "no HTTP connection manager"},
		{"a chain without end", &listenerv3.Listener{}, `{` + bound + `,"filterChains":[{"filters":[{"name":"x"}]}]}`, "ends it: false", "ends it: false"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			if err := protojson.Unmarshal([]byte(tc.text), tc.m); err != nil {
				t.Fatal(err)
			}
			for _, asked := range []struct {
				client, want string
				err          error
			}{{"Envoy", tc.envoy, envoycheck.Envoy(tc.m)}, {"gRPC", tc.grpc, envoycheck.GRPC(tc.m)}} {
				switch {
				case asked.want == "" && asked.err != nil:
					t.Errorf("%s: %v", asked.client, asked.err)
				case asked.want != "" && (asked.err == nil || !strings.Contains(asked.err.Error(), asked.want)):
					t.Errorf("%s: %v, want %q", asked.client, asked.err, asked.want)
				}
			}
		})
	}
}

// TestNamesInErrors: an error begins with the type and the name of the resource, whatever is in the name.
func TestNamesInErrors(t *testing.T) {
	for want, m := range map[string]proto.Message{
		"Cluster a%d: ":               &clusterv3.Cluster{Name: "a%d", ConnectTimeout: &durationpb.Duration{Seconds: -1}},
		"ClusterLoadAssignment a%s: ": &endpointv3.ClusterLoadAssignment{ClusterName: "a%s", Policy: &endpointv3.ClusterLoadAssignment_Policy{EndpointStaleAfter: &durationpb.Duration{}}},
		"Route: ":                     &routev3.Route{Name: "a"},
	} {
		if err := envoycheck.Envoy(m); err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "%!") {
			t.Errorf("the error is %v, want a beginning %q", err, want)
		}
	}
}
