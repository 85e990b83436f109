// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// TestRefusalsThatKeepComing: an object that changes all the time, and whose states a client
// rejects, does not delay the change of another object by more than a second, nor callers that wait
// for other clients, however long the client takes to answer.
func TestRefusalsThatKeepComing(t *testing.T) {
	for _, latency := range []time.Duration{3 * time.Millisecond, 40 * time.Millisecond} {
		t.Run(latency.String(), func(t *testing.T) {
			eachShared(t, func(t *testing.T, typeURL string, delta bool) {
				t.Helper()
				s := newQuarantineScene(t, typeURL)
				s.provider.set("r", map[string]string{"a": "1", "b": "bad", "c": "1", "d": "1"})
				s.flush()
				picky := newJudge(startsBad)
				picky.Client = s.client(xdstest.ClientOptions{Delta: delta, Node: node("picky", "shop"), Answer: func(r xdstest.Response) error {
					time.Sleep(latency)
					return picky.answer(r)
				}})
				if typeURL == envoy.ListenerType {
					s.subscribe(picky.Client, typeURL)
				} else {
					s.subscribe(picky.Client, typeURL, "r")
				}
				s.judge("other", delta, nothingIsBad, "r")
				const changes, every = 300, 10 * time.Millisecond
				wanted, since, longest := "1", time.Now(), time.Duration(0)
				for i := range changes {
					values := map[string]string{"b": fmt.Sprint("bad", i)}
					if i%200 == 50 {
						wanted, since = fmt.Sprint(i), time.Now()
						values["c"] = wanted
					}
					s.provider.set("r", values)
					time.Sleep(every)
					if picky.state("r")["c"] != wanted {
						longest = max(longest, time.Since(since))
					}
				}
				if longest > time.Second {
					t.Errorf("a neighbour's change has waited for %v", longest)
				}
				ctx, cancel := context.WithTimeout(s.context(), time.Second)
				defer cancel()
				if err := s.WaitApplied(ctx, isOther); err != nil {
					t.Error(err)
				}
				time.Sleep(2 * time.Second)
				synctest.Wait()
				check(t, "left out", s.leftOut("picky"), []string{"r b"})
				s.provider.set("r", map[string]string{"b": "good"})
				time.Sleep(10 * time.Second) // it has to rest for a while
				synctest.Wait()
				check(t, "left out in the end", s.leftOut("picky"), []string{})
				check(t, "the object in the end", picky.state("r")["b"], "good")
			})
		})
	}
}

func isOther(p ads.ProxyStatus) bool { return p.ID == node("other", "shop").GetId() }
