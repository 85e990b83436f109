// SPDX-License-Identifier: Apache-2.0

package prometheus_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	statusv3 "github.com/envoyproxy/go-control-plane/envoy/service/status/v3"
	matcher "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/grpc"

	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// question is something that an operator asks.
type question struct {
	name string
	ask  func() error
}

// questions are the requests that an operator can make to the server, while the proxies of crowd
// are connected.
func (w *watched) questions() []question {
	status := func(r *statusv3.ClientStatusRequest) func() error {
		return func() error {
			answer, err := statusv3.NewClientStatusDiscoveryServiceClient(w.shared()).
				FetchClientStatus(w.t.Context(), r, grpc.MaxCallRecvMsgSize(1<<30))
			if err == nil && len(answer.GetConfig()) == 0 {
				err = fmt.Errorf("CSDS has no proxies")
			}
			return err
		}
	}
	page := func(target string) func() error {
		return func() error {
			answer := httptest.NewRecorder()
			w.pages.ServeHTTP(answer, httptest.NewRequestWithContext(w.t.Context(), http.MethodGet, target, http.NoBody))
			if answer.Code != http.StatusOK {
				return fmt.Errorf("%s: %d", target, answer.Code)
			}
			return nil
		}
	}
	return []question{
		{"CSDS-one", status(&statusv3.ClientStatusRequest{NodeMatchers: []*matcher.NodeMatcher{{
			NodeId: &matcher.StringMatcher{MatchPattern: &matcher.StringMatcher_Exact{Exact: node("n7").GetId()}},
		}}})},
		{"CSDS-all", status(&statusv3.ClientStatusRequest{Node: &core.Node{Id: "operator"}})},
		{"first-page", page("/")},
		{"proxies-page", page("/proxies")},
		{"proxy-page", page("/proxy?id=" + node("n7").GetId())},
		{"scrape", func() error { _, err := w.metrics.Gather(); return err }},
	}
}

// BenchmarkAsking measures the cost of one question while 10,000 proxies are connected, and its
// effect on pushes. An endpoint changes every 5 ms. The latency of a change is measured from its
// scheduled time until it was sent to the only proxy that has the endpoint, so that a delayed push
// also counts for the changes behind it. The question is asked at the beginning of every other
// second. The seconds with and without the question share the load of the machine.
func BenchmarkAsking(b *testing.B) {
	var hosts []string
	for i := range 100 {
		hosts = append(hosts, fmt.Sprint("h", i))
	}
	w := serveWatched(b, hosts...)
	w.flush()
	w.crowd(10_000)
	w.proxy = w.client(xdstest.ClientOptions{Delta: true, Node: node("proxy")}, envoy.LoadAssignmentType)
	w.next(w.proxy)
	for _, q := range w.questions() {
		b.Run("alone/"+q.name, func(b *testing.B) {
			for b.Loop() {
				if err := q.ask(); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("pushes/"+q.name, func(b *testing.B) { benchPushesBeside(b, w, q) })
	}
}

// benchPushesBeside pushes while a question is asked.
func benchPushesBeside(b *testing.B, w *watched, q question) {
	b.Helper()
	const every = 5 * time.Millisecond
	took, n, asked := make([][]time.Duration, 2), 0, -1
	var asking sync.WaitGroup
	begun := time.Now()
	for b.Loop() {
		due := begun.Add(time.Duration(n) * every)
		time.Sleep(time.Until(due))
		second := int(due.Sub(begun) / time.Second)
		if second%2 == 1 && second != asked {
			asked = second
			asking.Go(func() {
				if err := q.ask(); err != nil {
					b.Error(err)
				}
			})
		}
		n++
		operations()["endpoint"](w.fixture, n)
		took[second%2] = append(took[second%2], time.Since(due))
	}
	asking.Wait()
	for i, of := range []string{"quiet", "asked"} {
		if len(took[i]) == 0 { // a short run
			continue
		}
		slices.Sort(took[i])
		b.ReportMetric(float64(took[i][len(took[i])/2].Microseconds()), of+"-p50-µs")
		b.ReportMetric(float64(took[i][len(took[i])*99/100].Microseconds()), of+"-p99-µs")
		b.ReportMetric(float64(took[i][len(took[i])-1].Microseconds()), of+"-max-µs")
	}
}
