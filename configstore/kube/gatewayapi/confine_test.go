// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/pilotkit/pilotkit/internal/test/testmain"
)

// TestPanicOfOneObject: if the conversion of a route panics, or the application of a change does,
// everything else in the batch is converted. The last result of the route stays until the route can be
// converted again.
func TestPanicOfOneObject(t *testing.T) {
	testmain.ExpectPanic(t, "nil pointer")
	others := changesOf(t, world+httpRoute("a", `[{matches: [{path: {value: /a}}], `+toCart+`}]`)+httpRoute("c", `[{`+toCart+`}]`))
	good := changesOf(t, httpRoute("b", `[{matches: [{path: {value: /b}}], `+toCart+`}]`))
	bad := []Change{setRoute(KindHTTPRoute, Key{"shop", "b"}, (*gatewayv1.HTTPRoute)(nil)), Set((*corev1.Service)(nil))}
	var log bytes.Buffer
	after := func(batches ...[]Change) *Snapshot {
		c := NewConverter()
		c.logger = slog.New(slog.NewTextHandler(&log, nil))
		for _, batch := range batches {
			c.Apply(batch...)
		}
		return c.Snapshot()
	}
	all := after(slices.Concat(good, others))
	for name, tt := range map[string]struct{ want, got *Snapshot }{
		"the others of its batch":     {after(others), after(slices.Concat(bad, others))},
		"its last result":             {all, after(slices.Concat(good, others), bad)},
		"once it is converted again":  {all, after(slices.Concat(bad, others), good)},
		"after its deletion":          {after(others), after(slices.Concat(bad, others), []Change{Delete[*gatewayv1.HTTPRoute]("shop", "b")})},
		"the others in another batch": {after(others), after(bad, others)},
	} {
		if diff := diffSnapshots(tt.want, tt.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if !strings.Contains(log.String(), `object="HTTPRoute shop/b"`) {
		t.Errorf("the log does not name the route: %s", &log)
	}
}

// changesOf returns the changes that create objects.
func changesOf(t *testing.T, text string) []Change {
	t.Helper()
	docs, err := documents(text)
	if err != nil {
		t.Fatal(err)
	}
	sys := newSystem()
	for _, doc := range docs {
		if err := sys.apply(doc); err != nil {
			t.Fatal(err)
		}
	}
	return sys.pending
}
