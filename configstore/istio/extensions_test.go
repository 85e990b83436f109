// SPDX-License-Identifier: Apache-2.0

package istio_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pilotkit/pilotkit/configstore/istio"
)

const telemetryBase = `
selector: {matchLabels: {app: a}}
tracing:
- match: {mode: CLIENT}
  providers: [{name: zipkin}]
  randomSamplingPercentage: 10.5
  customTags: {a: {literal: {value: b}}, c: {environment: {name: D}}, e: {header: {name: f}}, g: {formatter: {value: "%h%"}}}
metrics:
- providers: [{name: prometheus}]
  reportingInterval: 5s
  overrides:
  - match: {metric: REQUEST_COUNT, mode: SERVER}
    tagOverrides: {a: {value: b}, c: {operation: REMOVE}}
  - match: {customMetric: x}
    disabled: true
accessLogging:
- match: {mode: SERVER}
  providers: [{name: envoy}]
  filter: {expression: response.code >= 400}
`

func TestTelemetry(t *testing.T) {
	testRules(t, istio.Telemetry, telemetryBase, []ruleTest{
		{
			name: "tracing",
			spec: `tracing: [{match: {mode: 9}, providers: [{}, {name: a}], randomSamplingPercentage: 100.5, customTags: {"": {}, a: {literal: {}}, b: {environment: {}}, c: {header: {}}, d: {formatter: {}}}}, {}]`,
			violations: []string{
				"spec.tracing[0].match.mode: must be one of CLIENT_AND_SERVER, CLIENT, SERVER, is 9",
				"spec.tracing[0].providers[0].name: is required",
				"spec.tracing[0].randomSamplingPercentage: must be 0–100, is 100.5",
				"spec.tracing[0].customTags[]: key must not be empty",
				"spec.tracing[0].customTags[a].literal.value: is required",
				"spec.tracing[0].customTags[b].environment.name: is required",
				"spec.tracing[0].customTags[c].header.name: is required",
				"spec.tracing[0].customTags[d].formatter.value: is required",
			},
			warnings: []string{
				"spec.tracing: has 2 elements; Istio takes the first only",
				"spec.tracing[0].providers: has 2 elements; Istio takes the first only",
				"spec.tracing[0].customTags[]: has no effect without one of literal, environment, header, formatter",
			},
		},
		{
			name: "metrics",
			spec: `metrics: [{providers: [{}], reportingInterval: 0s, overrides: [{match: {metric: 99, mode: 9}, tagOverrides: {"": {value: a}, a: {}, b: {operation: REMOVE, value: c}, c: {operation: 9}}}, {match: {customMetric: ""}}]}]`,
			violations: []string{
				"spec.metrics[0].providers[0].name: is required",
				"spec.metrics[0].reportingInterval: must be at least 1ms, is 0s",
				"spec.metrics[0].overrides[0].match.mode: must be one of CLIENT_AND_SERVER, CLIENT, SERVER, is 9",
				"spec.metrics[0].overrides[0].match.metric: must be one of ALL_METRICS, REQUEST_COUNT, REQUEST_DURATION, REQUEST_SIZE, RESPONSE_SIZE, TCP_OPENED_CONNECTIONS, TCP_CLOSED_CONNECTIONS, TCP_SENT_BYTES, TCP_RECEIVED_BYTES, GRPC_REQUEST_MESSAGES, GRPC_RESPONSE_MESSAGES, is 99",
				"spec.metrics[0].overrides[0].tagOverrides[]: key must not be empty",
				"spec.metrics[0].overrides[0].tagOverrides[a].value: is required for operation UPSERT",
				"spec.metrics[0].overrides[0].tagOverrides[b].value: must not be set for operation REMOVE",
				"spec.metrics[0].overrides[0].tagOverrides[c].operation: must be one of UPSERT, REMOVE, is 9",
				"spec.metrics[0].overrides[1].match.customMetric: must not be empty",
			},
		},
		{
			name: "access logging",
			spec: `accessLogging: [{match: {mode: 9}, providers: [{}], filter: {}}]`,
			violations: []string{
				"spec.accessLogging[0].match.mode: must be one of CLIENT_AND_SERVER, CLIENT, SERVER, is 9",
				"spec.accessLogging[0].providers[0].name: is required",
				"spec.accessLogging[0].filter.expression: is required",
			},
		},
	})
}

const proxyConfigBase = `
selector: {matchLabels: {app: a}}
concurrency: 0
environmentVariables: {ISTIO_META_A: b}
image: {imageType: distroless}
`

func TestProxyConfig(t *testing.T) {
	testRules(t, istio.ProxyConfig, proxyConfigBase, []ruleTest{
		{
			name: "everything",
			spec: `{concurrency: -1, environmentVariables: {"": a, "a=b": c, d: ` + strings.Repeat("a", 2049) + `}, image: {imageType: "a:b"}}`,
			violations: []string{
				"spec.concurrency: must not be negative, is -1",
				"spec.environmentVariables[]: key must be the name of an environment variable",
				"spec.environmentVariables[a=b]: key must be the name of an environment variable",
				"spec.environmentVariables[d]: must have at most 2048 characters, has 2049",
			},
			warnings: []string{
				`spec.image.imageType: is "a:b", which no image tag can end in`,
			},
		},
	})
}

const digest = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

const wasmPluginBase = `
selector: {matchLabels: {app: a}}
url: oci://registry.example.com/filter@sha256:` + digest + `
sha256: ` + digest + `
imagePullPolicy: Always
imagePullSecret: a
pluginConfig: {a: b}
pluginName: a
phase: AUTHN
failStrategy: FAIL_OPEN
vmConfig: {env: [{name: A, value: b}, {name: C, valueFrom: HOST}]}
match: [{mode: CLIENT, ports: [{number: 80}, {number: 81}]}]
type: HTTP
`

func TestWasmPlugin(t *testing.T) {
	testRules(t, istio.WasmPlugin, wasmPluginBase, []ruleTest{
		{name: "image without scheme", spec: `{url: registry.example.com/filter:v1, sha256: ""}`},
		{name: "file", spec: `{url: "file:///a.wasm", sha256: ""}`},
		{name: "no url", spec: `url: ""`, violations: []string{"spec.url: is required"}},
		{name: "other scheme", spec: `url: ftp://a`, violations: []string{`spec.url: must have the scheme oci, http, https or file, is "ftp://a"`}},
		{
			name: "no URL at all",
			spec: `url: "http://[a"`,
			violations: []string{
				`spec.url: must be a URL or the reference of an OCI image, is "http://[a"`,
			},
		},
		{name: "image of the default registry", spec: `{url: "filter:latest", sha256: ""}`},
		{
			name: "scheme alone",
			spec: `url: "oci://"`,
			violations: []string{
				`spec.url: must be a URL or the reference of an OCI image, is "oci://"`,
			},
		},
		{name: "digest", spec: `{url: a, sha256: ABC}`, violations: []string{`spec.sha256: must be 64 hexadecimal digits in lower case, is "ABC"`}},
		{
			name:       "two digests",
			spec:       `url: a@sha256:b`,
			violations: []string{`spec.sha256: must be the digest in url, "b", is "` + digest + `"`},
		},
		{
			name: "enums and lengths",
			spec: `{imagePullPolicy: 9, failStrategy: 9, type: 9, phase: 9, imagePullSecret: ` + strings.Repeat("a", 254) + `, pluginName: ` + strings.Repeat("a", 257) + `}`,
			violations: []string{
				"spec.phase: must be one of UNSPECIFIED_PHASE, AUTHN, AUTHZ, STATS, is 9",
				"spec.imagePullPolicy: must be one of UNSPECIFIED_POLICY, IfNotPresent, Always, is 9",
				"spec.failStrategy: must be one of FAIL_CLOSE, FAIL_OPEN, FAIL_RELOAD, is 9",
				"spec.type: must be one of UNSPECIFIED_PLUGIN_TYPE, HTTP, NETWORK, is 9",
				"spec.imagePullSecret: must have at most 253 characters, has 254",
				"spec.pluginName: must have at most 256 characters, has 257",
			},
		},
		{
			name: "environment",
			spec: `vmConfig: {env: [{}, {name: A}, {name: A}, {name: B, valueFrom: HOST, value: a}, {name: C, valueFrom: 9}]}`,
			violations: []string{
				`spec.vmConfig.env[0].name: must be the name of an environment variable, is ""`,
				`spec.vmConfig.env[2].name: repeats env[1].name: "A"`,
				"spec.vmConfig.env[3].value: must not be set for valueFrom HOST",
				"spec.vmConfig.env[4].valueFrom: must be one of INLINE, HOST, is 9",
			},
		},
		{
			name:       "too many variables",
			spec:       `vmConfig: {env: [` + numbered("{name: A%d},", 257) + `]}`,
			violations: []string{"spec.vmConfig.env: must have at most 256 elements, has 257"},
		},
		{
			name: "traffic",
			spec: `match: [{mode: 9, ports: [{}, {number: 80}, {number: 80}]}]`,
			violations: []string{
				"spec.match[0].mode: must be one of UNDEFINED, CLIENT, SERVER, CLIENT_AND_SERVER, is 9",
				"spec.match[0].ports[0].number: must be 1–65535, is 0",
				"spec.match[0].ports[2].number: repeats ports[1].number: 80",
			},
		},
	})
}

// numbered repeats a format for 0 to n-1.
func numbered(format string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

const trafficExtensionBase = `
targetRefs: [{kind: Service, name: a}]
phase: STATS
match: [{mode: SERVER, ports: [{number: 80}]}]
lua: {inlineCode: "function envoy_on_request(h) end"}
`

func TestTrafficExtension(t *testing.T) {
	testRules(t, istio.TrafficExtension, trafficExtensionBase, []ruleTest{
		{name: "wasm", spec: `{lua: null, wasm: {url: a, pluginName: b}}`},
		{name: "neither", spec: `lua: null`, violations: []string{"spec: must have one of wasm, lua"}},
		{name: "bad wasm", spec: `{lua: null, wasm: {}}`, violations: []string{"spec.wasm.url: is required"}},
		{name: "no code", spec: `lua: {}`, violations: []string{"spec.lua.inlineCode: is required"}},
		{
			name:     "code that is never called",
			spec:     `lua: {inlineCode: "x = 1"}`,
			warnings: []string{"spec.lua.inlineCode: defines neither envoy_on_request nor envoy_on_response, and is never called"},
		},
		{
			name:       "too much code",
			spec:       `lua: {inlineCode: envoy_on_response` + strings.Repeat("a", 64<<10) + `}`,
			violations: []string{"spec.lua.inlineCode: must have at most 65536 characters, has 65553"},
		},
		{
			name: "phase, match and target",
			spec: `{phase: 9, match: [{ports: [{}]}], selector: {matchLabels: {a: b}}}`,
			violations: []string{
				"spec.targetRefs: must not be set together with selector",
				"spec.phase: must be one of UNSPECIFIED, AUTHN, AUTHZ, STATS, is 9",
				"spec.match[0].ports[0].number: must be 1–65535, is 0",
			},
		},
	})
}

const envoyFilterBase = `
workloadSelector: {labels: {app: a}}
configPatches:
- applyTo: HTTP_FILTER
  match:
    context: SIDECAR_INBOUND
    proxy: {proxyVersion: "^1\\.30.*"}
    listener: {portNumber: 80, filterChain: {destinationPort: 80, filter: {name: envoy.filters.network.http_connection_manager, subFilter: {name: envoy.filters.http.router}}}}
  patch: {operation: INSERT_BEFORE, value: {name: a, typed_config: {"@type": type.googleapis.com/a.B}}}
- applyTo: CLUSTER
  match: {cluster: {service: a.example.com}}
  patch: {operation: REMOVE}
- applyTo: VIRTUAL_HOST
  match: {context: GATEWAY, routeConfiguration: {portNumber: 443, vhost: {name: a, route: {action: ANY}}}}
  patch: {operation: MERGE, value: {name: a}}
- applyTo: NETWORK_FILTER
  patch: {operation: ADD, filterClass: AUTHZ, value: {name: a, typedConfig: {"@type": type.googleapis.com/a.B}}}
- applyTo: HTTP_FILTER
  match: {context: WAYPOINT, waypoint: {portNumber: 80}}
  patch: {operation: ADD, value: {name: a, config_discovery: {}}}
priority: -10
`

func TestEnvoyFilter(t *testing.T) {
	testRules(t, istio.EnvoyFilter, envoyFilterBase, []ruleTest{
		{
			name:       "two targets",
			spec:       `targetRefs: [{kind: Service, name: a}]`,
			violations: []string{"spec.targetRefs: must not be set together with workloadSelector"},
		},
		{
			name: "empty patches",
			spec: `configPatches: [{}, {applyTo: CLUSTER, patch: {}}, {applyTo: 99, patch: {operation: 99, filterClass: 99}}]`,
			violations: []string{
				"spec.configPatches[0].applyTo: is required",
				"spec.configPatches[0].patch: is required",
				"spec.configPatches[1].patch.operation: is required",
				"spec.configPatches[2].applyTo: must be one of INVALID, LISTENER, FILTER_CHAIN, NETWORK_FILTER, HTTP_FILTER, ROUTE_CONFIGURATION, VIRTUAL_HOST, HTTP_ROUTE, CLUSTER, EXTENSION_CONFIG, BOOTSTRAP, LISTENER_FILTER, is 99",
				"spec.configPatches[2].patch.operation: must be one of INVALID, MERGE, ADD, REMOVE, INSERT_BEFORE, INSERT_AFTER, INSERT_FIRST, REPLACE, MERGE_AND_REPLACE_LIST, is 99",
				"spec.configPatches[2].patch.filterClass: must be one of UNSPECIFIED, AUTHN, AUTHZ, STATS, is 99",
				"spec.configPatches[2].patch.value: is required for operation 99",
			},
			warnings: []string{"spec.configPatches[2].patch.filterClass: has no effect for operation 99, only for ADD"},
		},
		{
			name: "operations",
			spec: `
configPatches:
- {applyTo: BOOTSTRAP, patch: {operation: ADD, value: {}}}
- {applyTo: EXTENSION_CONFIG, patch: {operation: MERGE, value: {}}}
- {applyTo: ROUTE_CONFIGURATION, patch: {operation: REMOVE, value: {}}}`,
			violations: []string{"spec.configPatches[0].patch.operation: must be MERGE for applyTo BOOTSTRAP, is ADD"},
			warnings: []string{
				"spec.configPatches[0].applyTo: BOOTSTRAP is deprecated",
				"spec.configPatches[1].patch.operation: is MERGE; only ADD has an effect for applyTo EXTENSION_CONFIG",
				"spec.configPatches[2].patch.value: has no effect for operation REMOVE",
				"spec.configPatches[2].patch.operation: is REMOVE; only merging has an effect for applyTo ROUTE_CONFIGURATION",
			},
		},
		{
			name: "matches",
			spec: `
configPatches:
- {applyTo: CLUSTER, patch: {operation: REMOVE}, match: {context: 9, proxy: {proxyVersion: "("}, listener: {portNumber: 65536}}}
- {applyTo: LISTENER, patch: {operation: REMOVE}, match: {routeConfiguration: {portNumber: 65536, vhost: {route: {action: 9}}}}}
- {applyTo: LISTENER, patch: {operation: REMOVE}, match: {cluster: {portNumber: 65536}}}
- {applyTo: HTTP_FILTER, patch: {operation: REMOVE}, match: {context: ANY, waypoint: {portNumber: 65536}}}
- {applyTo: HTTP_FILTER, patch: {operation: REMOVE}, match: {context: WAYPOINT}}
- {applyTo: HTTP_FILTER, patch: {operation: REMOVE}, match: {listener: {filterChain: {destinationPort: 65536, filter: {name: other, subFilter: {}}}}}}
- {applyTo: NETWORK_FILTER, patch: {operation: REMOVE}, match: {listener: {filterChain: {filter: {subFilter: {name: a}}}}}}
- {applyTo: EXTENSION_CONFIG, patch: {operation: ADD, value: {}}, match: {context: GATEWAY, listener: {portNumber: 80}}}`,
			violations: []string{
				"spec.configPatches[0].match.context: must be one of ANY, SIDECAR_INBOUND, SIDECAR_OUTBOUND, GATEWAY, WAYPOINT, is 9",
				"spec.configPatches[0].match.proxy.proxyVersion: must be a regular expression: error parsing regexp: missing closing ): `(`",
				"spec.configPatches[0].match.listener: must not be set for applyTo CLUSTER",
				"spec.configPatches[0].match.listener.portNumber: must be 0 (unset) or 1–65535, is 65536",
				"spec.configPatches[1].match.routeConfiguration: must not be set for applyTo LISTENER",
				"spec.configPatches[1].match.routeConfiguration.portNumber: must be 0 (unset) or 1–65535, is 65536",
				"spec.configPatches[1].match.routeConfiguration.vhost.route.action: must be one of ANY, ROUTE, REDIRECT, DIRECT_RESPONSE, is 9",
				"spec.configPatches[2].match.cluster: must not be set for applyTo LISTENER",
				"spec.configPatches[2].match.cluster.portNumber: must be 0 (unset) or 1–65535, is 65536",
				"spec.configPatches[3].match.waypoint: must be set for context WAYPOINT and for no other, is ANY",
				"spec.configPatches[3].match.waypoint.portNumber: must be 0 (unset) or 1–65535, is 65536",
				"spec.configPatches[4].match.waypoint: must be set for context WAYPOINT and for no other, is WAYPOINT",
				"spec.configPatches[5].match.listener.filterChain.destinationPort: must be 0 (unset) or 1–65535, is 65536",
				`spec.configPatches[5].match.listener.filterChain.filter.name: must be envoy.filters.network.http_connection_manager together with subFilter, is "other"`,
				"spec.configPatches[5].match.listener.filterChain.filter.subFilter.name: is required",
				"spec.configPatches[6].match.listener.filterChain.filter.name: is required",
				"spec.configPatches[6].match.listener.filterChain.filter.subFilter: must not be set for applyTo NETWORK_FILTER, only for HTTP_FILTER",
			},
			warnings: []string{
				"spec.configPatches[7].match.listener: has no effect for applyTo EXTENSION_CONFIG",
			},
		},
	})
}
