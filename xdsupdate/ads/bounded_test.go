// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// TestUnansweredResponsesOfAStreamAreBounded: a client that sends requests without ever answering
// is sent 32 responses. The NACK of one of them counts once, a NACK of a response before an
// answered one does not count, and the other responses follow the first answer.
func TestUnansweredResponsesOfAStreamAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := serve(t, ads.Options{}, service("a", "shop"))
		f.flush()
		stream, err := discovery.NewAggregatedDiscoveryServiceClient(f.dial()).DeltaAggregatedResources(f.context())
		if err != nil {
			t.Fatal(err)
		}
		send := func(r *discovery.DeltaDiscoveryRequest) {
			t.Helper()
			r.Node, r.TypeUrl = node("a", "shop"), envoy.LoadAssignmentType
			if err := stream.Send(r); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 100 {
			send(&discovery.DeltaDiscoveryRequest{ResourceNamesSubscribe: []string{fmt.Sprint("none-", i)}})
			synctest.Wait() // for its own response
		}
		var nonces []string
		names := 0
		receive := func() {
			t.Helper()
			response, err := stream.Recv()
			if err != nil {
				t.Fatal(err)
			}
			nonces = append(nonces, response.GetNonce())
			names += len(response.GetResources()) + len(response.GetRemovedResources())
		}
		for range 32 {
			receive()
		}
		check(t, "names in the responses", names, 32)
		refuse := func(nonce string) int {
			t.Helper()
			send(&discovery.DeltaDiscoveryRequest{ResponseNonce: nonce, ErrorDetail: &rpcstatus.Status{Message: "no"}})
			synctest.Wait()
			return f.Proxies()[0].Types[envoy.LoadAssignmentType].Rejections
		}
		check(t, "refusals after one of a late response", refuse(nonces[20]), 1)
		for names < 100 {
			receive()
		}
		check(t, "refusals after one of an earlier response", refuse(nonces[15]), 1)
		check(t, "refusals after one of the last response", refuse(nonces[len(nonces)-1]), 2)
	})
}

// TestSilentWildcardIsBounded: a client of everything that never answers costs the
// server nothing for names that come and go meanwhile.
func TestSilentWildcardIsBounded(t *testing.T) {
	for name, delta := range protocols() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := serve(t, ads.Options{})
				c := f.client(xdstest.ClientOptions{Delta: delta, Node: node("a", "shop"), Manual: true})
				f.subscribe(c, envoy.ClusterType)
				const generations, hosts = 10, 300
				pushes := 0
				turn := func() {
					var changed []string
					var list []*registry.Service
					for i := range hosts {
						was, is := fmt.Sprintf("host-%d-%d", pushes, i), fmt.Sprintf("host-%d-%d", pushes+1, i)
						changed, list = append(changed, was, is), append(list, service(is, "shop"))
					}
					pushes++
					f.define(changed, list...)
					f.flush()
					synctest.Wait() // until all sends are done, because they take memory, too
				}
				for range 4 {
					turn()
				}
				before := held().HeapAlloc
				for range generations {
					turn()
				}
				grown := int64(held().HeapAlloc) - int64(before)
				perName := grown / (generations * hosts)
				t.Logf("the heap has grown by %d bytes for each name that came and went", perName)
				if perName > 40 {
					t.Errorf("the heap has grown by %d bytes for each of %d names that came and went", perName, generations*hosts)
				}
				if n := len(c.Responses()); n > 4 {
					t.Errorf("%d responses without an answer", n)
				}

				// After its answer it is sent the present resources only.
				for {
					synctest.Wait()
					r, err := c.Next(f.context())
					if err != nil {
						break
					}
					if err := c.Ack(r); err != nil {
						t.Fatal(err)
					}
				}
				names := c.State().Names(envoy.ClusterType)
				check(t, "clusters", len(names), hosts)
				check(t, "a cluster", strings.HasPrefix(names[0], fmt.Sprintf("outbound|80||host-%d-", pushes)), true)
			})
		})
	}
}
