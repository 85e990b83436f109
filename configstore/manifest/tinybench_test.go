// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"strings"
	"testing"

	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/manifest"
)

// BenchmarkTinyDocuments reads nearly empty documents: the fixed cost of a document, readable or
// not.
func BenchmarkTinyDocuments(b *testing.B) {
	const n = 1000
	for _, bench := range []struct{ name, document string }{
		{"broken", "---\n{\n"}, {"other", "---\na: b\n"}, {"nameless", "---\napiVersion: networking.istio.io/v1\nkind: ServiceEntry\n"},
	} {
		b.Run(bench.name, func(b *testing.B) {
			schemas, data := istio.Schemas(), []byte(strings.Repeat(bench.document, n))
			b.ReportAllocs()
			for b.Loop() {
				if docs := manifest.Parse(schemas, data, manifest.Options{}); len(docs) != n {
					b.Fatalf("%d documents", len(docs))
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/document")
		})
	}
}
