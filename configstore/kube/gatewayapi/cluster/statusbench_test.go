// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pilotkit/pilotkit/configstore/kube"
	"github.com/pilotkit/pilotkit/configstore/kube/gatewayapi"
	"github.com/pilotkit/pilotkit/configstore/kube/gatewayapi/cluster"
)

// BenchmarkStatuses is the cost per status of 300 HTTPRoutes: first of a new process that writes
// all of them to an API server without a rate limit, then of the next process, which writes none.
func BenchmarkStatuses(b *testing.B) {
	s := newSite(b)
	s.apply(class + "---" + edge)
	const routes = 300
	var text strings.Builder
	for i := range routes {
		text.WriteString("---" + strings.ReplaceAll(cart, "cart", fmt.Sprintf("cart-%d", i)))
	}
	s.apply(text.String())
	opts := cluster.Options{CacheOptions: gatewayapi.CacheOptions{Infrastructure: &host{answer: ready("10.0.0.1")}}}
	for b.Loop() {
		p := s.start(restConfig(s.server.Config()), opts, kube.StatusOptions{Rate: 1e6, Workers: 8})
		s.synced(p)
		began := b.Elapsed()
		eventually(b, "all statuses are written", func() bool { return p.statuses.Leading() && p.settled(b, s.namespace) })
		if n := p.statuses.Written(); n > 0 {
			b.ReportMetric(float64(n)/(b.Elapsed()-began).Seconds(), "writes/s")
		}
		p.stop()
		again := s.start(restConfig(s.server.Config()), opts, kube.StatusOptions{})
		s.synced(again)
		eventually(b, "the next process finds all statuses right", func() bool { return again.statuses.Leading() && again.settled(b, s.namespace) })
		b.ReportMetric(float64(again.statuses.Written()), "writes-of-a-restart")
		again.stop()
	}
}
