// SPDX-License-Identifier: Apache-2.0

package istio_test

import (
	"encoding/json"
	"errors"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
)

// ruleTest is one object with its expected findings.
type ruleTest struct {
	name string
	// spec replaces top-level fields of the base spec; null removes one.
	spec string
	// meta replaces the metadata of the object, apart from its name "a" and namespace "ns".
	meta configstore.Meta
	// violations and warnings are written "field: message".
	violations []string
	warnings   []string
}

// testRules validates the base spec, which must be without findings, and each
// test's object.
func testRules(t *testing.T, kind configstore.GroupVersionKind, base string, tests []ruleTest) {
	t.Helper()
	for _, tt := range append([]ruleTest{{name: "base"}}, tests...) {
		t.Run(tt.name, func(t *testing.T) {
			c := configstore.Config{Meta: tt.meta, Spec: decodeSpec(t, kind, base, tt.spec)}
			c.GroupVersionKind = kind
			if c.Name == "" {
				c.Name = "a"
			}
			c.Namespace = "ns"
			schema, _ := istio.Schemas().Find(kind)
			warnings, violations := checked(schema, c)
			if diff := cmp.Diff(tt.violations, lines(violations)); diff != "" {
				t.Errorf("violations (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.warnings, lines(warnings)); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

// checked returns all findings of Schema.Check.
func checked(schema configstore.Schema, c configstore.Config) (warnings, violations []configstore.Violation) {
	warnings, err := schema.Check(c)
	if invalid, ok := errors.AsType[*configstore.ValidationError](err); ok {
		violations = invalid.Violations
	}
	return warnings, violations
}

func decodeSpec(tb testing.TB, kind configstore.GroupVersionKind, base, replacement string) proto.Message {
	tb.Helper()
	var fields, replaced map[string]any
	if err := yaml.Unmarshal([]byte(base), &fields); err != nil {
		tb.Fatalf("base: %v", err)
	}
	if err := yaml.Unmarshal([]byte(replacement), &replaced); err != nil {
		tb.Fatalf("spec: %v", err)
	}
	if fields == nil {
		fields = map[string]any{}
	}
	maps.Copy(fields, replaced)
	text, err := json.Marshal(fields)
	if err != nil {
		tb.Fatal(err)
	}
	schema, ok := istio.Schemas().Find(kind)
	if !ok {
		tb.Fatalf("unknown kind %s", kind)
	}
	spec := schema.NewSpec()
	if err := protojson.Unmarshal(text, spec); err != nil {
		tb.Fatalf("%v in %s", err, text)
	}
	return spec
}

func lines(findings []configstore.Violation) []string {
	var out []string
	for _, f := range findings {
		out = append(out, f.String())
	}
	return out
}

// bases holds a valid spec of every kind, which uses most of its fields.
func bases() map[configstore.GroupVersionKind]string {
	return map[configstore.GroupVersionKind]string{
		istio.AuthorizationPolicy:   authorizationPolicyBase,
		istio.DestinationRule:       destinationRuleBase,
		istio.EnvoyFilter:           envoyFilterBase,
		istio.Gateway:               gatewayBase,
		istio.PeerAuthentication:    peerAuthenticationBase,
		istio.ProxyConfig:           proxyConfigBase,
		istio.RequestAuthentication: requestAuthenticationBase,
		istio.ServiceEntry:          serviceEntryBase,
		istio.Sidecar:               sidecarBase,
		istio.Telemetry:             telemetryBase,
		istio.TrafficExtension:      trafficExtensionBase,
		istio.VirtualService:        virtualServiceBase,
		istio.WasmPlugin:            wasmPluginBase,
		istio.WorkloadEntry:         workloadEntryBase,
		istio.WorkloadGroup:         workloadGroupBase,
	}
}

// variants holds replacements for parts of the base specs, which lead to more
// rules.
func variants() map[configstore.GroupVersionKind][]string {
	return map[configstore.GroupVersionKind][]string{
		istio.DestinationRule: {
			`trafficPolicy: {loadBalancer: {consistentHash: {httpCookie: {name: a, attributes: [{name: b}]}}, localityLbSetting: {failover: [{from: a, to: b}]}}}`,
			`trafficPolicy: {loadBalancer: {zoneAwareLbSetting: {failover: [{from: a, to: b}]}}}`,
		},
		istio.Gateway: {
			`servers: [{port: {number: 443, name: a, protocol: TLS}, hosts: ["*"], tls: {mode: SIMPLE, tlsCertificates: [{serverCertificate: a, privateKey: b}]}}]`,
		},
		istio.ServiceEntry: {
			`{resolution: DNS, endpoints: [{address: a.example.com}]}`,
			`{hosts: ["*.example.com"], resolution: DYNAMIC_DNS, addresses: [], endpoints: []}`,
			`{resolution: NONE, endpoints: []}`,
		},
		istio.TrafficExtension: {
			`{lua: null, wasm: {url: a, vmConfig: {env: [{name: A}]}}}`,
		},
	}
}

// specs returns the base spec of a kind and its variants.
func specs(tb testing.TB, kind configstore.GroupVersionKind) []proto.Message {
	tb.Helper()
	out := []proto.Message{decodeSpec(tb, kind, bases()[kind], "")}
	for _, variant := range variants()[kind] {
		out = append(out, decodeSpec(tb, kind, bases()[kind], variant))
	}
	return out
}

// seeds returns specs to start fuzzing from, encoded.
func seeds(tb testing.TB, kind configstore.GroupVersionKind) [][]byte {
	tb.Helper()
	out := [][]byte{nil}
	for _, spec := range specs(tb, kind) {
		encoded, err := proto.Marshal(spec)
		if err != nil {
			tb.Fatal(err)
		}
		out = append(out, encoded)
	}
	return out
}
