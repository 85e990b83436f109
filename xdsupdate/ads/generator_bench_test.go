// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"context"
	"fmt"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
)

// BenchmarkGenerator measures a push with a generator of 10,000 resources of a view, which changes
// none of them, or one that a client is subscribed to; and the same push without a generator.
func BenchmarkGenerator(b *testing.B) {
	for name, changes := range map[string]int{"without": -1, "changes=0": 0, "changes=1": 1} {
		b.Run(name, func(b *testing.B) {
			var options ads.Options
			if changes >= 0 {
				options.Generators = []ads.Generator{newBenchGenerator(10_000, changes)}
			}
			f, _ := benchServer(b, 10, options)
			c := &rawClient{stream: dialRaw(b, f.listener.Addr().String(), deltaMethod), delta: true, typeURL: customType, names: []string{"00007"}}
			c.subscribe(b, 1)
			f.waitApplied()
			ctx := context.Background()
			req := &xdsupdate.PushRequest{ConfigsUpdated: xdsupdate.KeySet(xdsupdate.ConfigKey{Name: "x"})}
			b.ReportAllocs()
			for b.Loop() {
				f.ConfigUpdate(req)
				if err := f.Flush(ctx); err != nil {
					b.Fatal(err)
				}
				if changes > 0 {
					c.receive(b)
				}
			}
		})
	}
}

// benchGenerator has many resources, and changes some with each push.
type benchGenerator struct {
	messages []proto.Message
	changes  int
	pushes   int
}

func newBenchGenerator(n, changes int) *benchGenerator {
	g := &benchGenerator{changes: changes}
	for i := range n {
		g.messages = append(g.messages, wrapperspb.String(fmt.Sprint(i)))
	}
	return g
}

// Name implements ads.Generator.
func (*benchGenerator) Name() string { return "bench" }

// Affected implements ads.Generator.
func (*benchGenerator) Affected(*ads.PushContext) func(ads.View) bool { return ads.EveryView }

// Generate implements ads.Generator.
func (g *benchGenerator) Generate(_ ads.View, push *ads.PushContext, out *ads.Resources) error {
	if push.Request.Forced {
		for i, m := range g.messages {
			out.Set(customType, fmt.Sprintf("%05d", i), m)
		}
		return nil
	}
	for range g.changes {
		g.pushes++
		out.Set(customType, "00007", wrapperspb.String(fmt.Sprint("changed ", g.pushes%2)))
	}
	return nil
}
