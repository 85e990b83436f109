// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pilotkit/pilotkit/internal/test/tier"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// TestMixedClients: among 50 clients, some of them slow, some rejecting objects and some reconnecting all the time,
// WaitApplied always ends; a proxy is listed as long as its stream lasts; and nothing remains of the clients.
func TestMixedClients(t *testing.T) {
	for protocol, delta := range protocols() {
		t.Run(protocol, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, random := newQuarantineScene(t, envoy.RouteType), rand.New(rand.NewPCG(7, 7))
				s.provider.set("r", map[string]string{"a": "1", "b": "1", "c": "1", "d": "1", "e": "1"})
				s.flush()
				before := s.Remains()
				clients := make([]*judge, 50)
				connect := func(i int) {
					j, pause := newJudge(nothingIsBad), time.Duration(0)
					if i%10 < 3 {
						j.bad = startsBad
					}
					if i%3 == 0 {
						pause = time.Duration(random.IntN(300)) * time.Millisecond
					}
					j.Client = s.client(xdstest.ClientOptions{Delta: delta, Node: node(strconv.Itoa(i), "shop"), Answer: func(r xdstest.Response) error {
						time.Sleep(pause)
						return j.answer(r)
					}})
					s.subscribe(j.Client, envoy.RouteType, "r")
					clients[i] = j
				}
				for i := range clients {
					connect(i)
				}
				synctest.Wait()
				rejected := 0
				for step := range tier.Share(150) {
					value := strconv.Itoa(step)
					if random.IntN(3) == 0 {
						value = "bad" + value
					}
					s.provider.set("r", map[string]string{string(rune('a' + random.IntN(5))): value})
					s.flush()
					time.Sleep(time.Duration(random.IntN(20)) * time.Millisecond)
					if i := 5 * random.IntN(10); random.IntN(2) == 0 {
						clients[i].Close()
						synctest.Wait()
						check(t, "proxies when one has gone", len(s.Proxies()), len(clients)-1)
						connect(i)
					}
					if step%5 != 0 {
						continue
					}
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					err := s.WaitApplied(ctx, nil)
					cancel()
					if errors.Is(err, context.DeadlineExceeded) {
						t.Fatalf("step %d: %v", step, err)
					}
					if errors.Is(err, ads.ErrRejected) {
						rejected++
					}
				}
				if rejected == 0 {
					t.Error("nothing was rejected")
				}
				for _, c := range clients {
					c.Close()
				}
				synctest.Wait()
				check(t, "proxies in the end", len(s.Proxies()), 0)
				check(t, "the state of clients in the end", s.Remains(), before)
			})
		})
	}
}
