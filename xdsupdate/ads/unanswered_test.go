// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/pilotkit/pilotkit/internal/test/testmain"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// TestLoweredSizes runs the models with all caches and buffers too small.
func TestLoweredSizes(t *testing.T) {
	t.Parallel()
	testmain.Lowered(t, "^(TestModelOf.*|TestPhasesModel|TestRandomHistories|TestRefusalBehindManyResponses)$")
}

// TestRefusalBehindManyResponses: a client that sends requests and does not answer is sent a
// bounded number of responses, and the others as it answers; the resources that it rejects are
// found, and no others count as rejected.
func TestRefusalBehindManyResponses(t *testing.T) {
	for _, typeURL := range []string{envoy.RouteType, envoy.ClusterType, envoy.LoadAssignmentType} {
		t.Run(typeURL, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const refused = "r04"
				values := make(map[string]string)
				for i := range 40 {
					values[fmt.Sprintf("r%02d", i)] = "1"
				}
				s := newRefusalScene(t, typeURL, true, values)
				c := s.fixture.client(xdstest.ClientOptions{Delta: true, Node: node("slow", "shop"), Manual: true})
				for i := range 40 {
					s.subscribe(c, typeURL, fmt.Sprintf("r%02d", i))
					synctest.Wait()
				}
				if n := len(c.Responses()); n > 32 || n == 0 {
					t.Errorf("%d responses are without an answer", n)
				}
				got := make(map[string]struct{})
				for answered := 0; answered < len(c.Responses()); answered++ {
					answer := c.Ack
					r := c.Responses()[answered]
					for _, name := range r.Names() {
						got[name] = struct{}{}
					}
					if slices.Contains(r.Names(), refused) {
						answer = func(r xdstest.Response) error { return c.Nack(r, "something is bad") }
					}
					if err := answer(r); err != nil {
						t.Fatal(err)
					}
					synctest.Wait()
				}
				check(t, "resources that came in the end", len(got), 40)
				statuses := s.Proxies()
				i := slices.IndexFunc(statuses, func(p ads.ProxyStatus) bool { return p.ID == node("slow", "shop").GetId() })
				faults, _ := s.Faults()
				if status := statuses[i].Types[typeURL]; len(faults) != 1 || faults[0].Name != refused || status.Pending {
					t.Errorf("of the client is known: %+v", status)
				}
			})
		})
	}
}
