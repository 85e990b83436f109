// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"bytes"
	"fmt"
	"testing"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/encoding/protojson"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/manifest"
)

// standardEntry is the ServiceEntry that all benchmarks of this project use: two
// ports and five endpoints with labels of their own.
func standardEntry(i int) string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata:\n  name: se-%d\n  namespace: ns-%02d\nspec:\n", i, i%100)
	fmt.Fprintf(&b, "  hosts:\n  - svc-%d.example.com\n  addresses:\n  - 240.0.%d.%d\n  location: MESH_INTERNAL\n  resolution: STATIC\n", i, i/256%256, i%256)
	b.WriteString("  ports:\n  - {number: 80, name: http, protocol: HTTP}\n  - {number: 9090, name: grpc, protocol: GRPC}\n  endpoints:\n")
	for e := range 5 {
		fmt.Fprintf(&b, "  - address: 10.%d.%d.%d\n    locality: region/zone/subzone\n    serviceAccount: sa-%d\n    weight: 1\n    labels:\n", i/256%256, i%256, e, i)
		for l := range 6 {
			fmt.Fprintf(&b, "      label-%d: value-%d\n", l, i+l)
		}
	}
	return b.String()
}

// BenchmarkParse reads one standard ServiceEntry. L/yaml is the cost of the YAML parser alone,
// L/protojson that of protobuf's own JSON reader for the spec as JSON.
func BenchmarkParse(b *testing.B) {
	schemas := istio.Schemas()
	text := []byte(standardEntry(1))
	b.Run("YAML", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			if _, err := manifest.ParseAll(schemas, text, manifest.Options{}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("L/yaml", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			var n yaml.Node
			if err := yaml.Unmarshal(text, &n); err != nil {
				b.Fatal(err)
			}
		}
	})
	configs, err := manifest.ParseAll(schemas, text, manifest.Options{})
	if err != nil {
		b.Fatal(err)
	}
	asJSON, err := manifest.MarshalJSON(configs[0])
	if err != nil {
		b.Fatal(err)
	}
	b.Run("JSON", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(asJSON)))
		for b.Loop() {
			if _, err := manifest.ParseAll(schemas, asJSON, manifest.Options{}); err != nil {
				b.Fatal(err)
			}
		}
	})
	spec, err := protojson.Marshal(configs[0].Spec)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("L/protojson", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := protojson.Unmarshal(spec, &networking.ServiceEntry{}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkMarshal(b *testing.B) {
	configs, err := manifest.ParseAll(istio.Schemas(), []byte(standardEntry(1)), manifest.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := manifest.Marshal(configs[0]); err != nil {
			b.Fatal(err)
		}
	}
}
