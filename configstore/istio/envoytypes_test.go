// SPDX-License-Identifier: Apache-2.0

package istio_test

import (
	"testing"

	_ "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"                                     // a type to patch
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"                     // a type of a filter
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3" // a type to patch
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
)

// TestEnvoyTypes: with Envoy's types, patches must fit the patched messages.
func TestEnvoyTypes(t *testing.T) {
	schema, _ := istio.Schemas(istio.Options{EnvoyTypes: protoregistry.GlobalTypes}).Find(istio.EnvoyFilter)
	without, _ := istio.Schemas().Find(istio.EnvoyFilter)
	tests := []struct {
		name, patch          string
		violations, warnings []string
	}{
		{name: "cluster", patch: `{applyTo: CLUSTER, patch: {operation: MERGE, value: {name: a, connect_timeout: 5s, lbPolicy: RANDOM}}}`},
		{
			name:  "filter",
			patch: `{applyTo: HTTP_FILTER, patch: {operation: ADD, value: {name: a, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router, dynamic_stats: true}}}}`,
		},
		{
			name:       "wrong type of a value",
			patch:      `{applyTo: CLUSTER, patch: {operation: MERGE, value: {connect_timeout: [5]}}}`,
			violations: []string{`spec.configPatches[0].patch.value: must be a envoy.config.cluster.v3.Cluster: unexpected token [`},
		},
		{
			name:     "unknown field",
			patch:    `{applyTo: CLUSTER, patch: {operation: MERGE, value: {conect_timeout: 5s}}}`,
			warnings: []string{`spec.configPatches[0].patch.value: is not a known envoy.config.cluster.v3.Cluster: unknown field "conect_timeout"`},
		},
		{
			name:     "unknown type",
			patch:    `{applyTo: HTTP_FILTER, patch: {operation: ADD, value: {name: a, typed_config: {"@type": type.googleapis.com/a.B, c: [5]}}}}`,
			warnings: []string{`spec.configPatches[0].patch.value.typed_config.@type: is "type.googleapis.com/a.B", which is not known here: the value is not checked`},
		},
		{name: "removal", patch: `{applyTo: CLUSTER, patch: {operation: REMOVE}}`},
		{name: "unlinked message", patch: `{applyTo: BOOTSTRAP, patch: {operation: MERGE, value: {a: b}}}`, warnings: []string{"spec.configPatches[0].applyTo: BOOTSTRAP is deprecated"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := configstore.Config{Spec: decodeSpec(t, istio.EnvoyFilter, "", "configPatches: ["+tt.patch+"]")}
			warnings, violations := schema.Validate(c)
			if diff := cmp.Diff(tt.violations, lines(violations)); diff != "" {
				t.Errorf("violations (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.warnings, lines(warnings)); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
			if _, violations := without.Validate(c); len(violations) > 0 {
				t.Errorf("without types: %v", violations)
			}
		})
	}
}

// TestSchemasTakesOneOption: options are not merged.
func TestSchemasTakesOneOption(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("two options do not panic")
		}
	}()
	istio.Schemas(istio.Options{}, istio.Options{})
}
