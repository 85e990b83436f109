// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// longestTurn is that of the server: how long a large response that is not answered
// keeps others waiting.
const longestTurn = 50 * time.Millisecond

// largeServices are so many that a response with their clusters is large.
func largeServices() []*registry.Service {
	list := make([]*registry.Service, 500)
	for i := range list {
		list[i] = service(fmt.Sprintf("service-%05d.example.com", i), "shop")
	}
	return list
}

// TestLargeResponses: with one large response at a time, clients that never answer delay others for
// a moment each, clients that answer do not delay them, and no client keeps the server from ending.
func TestLargeResponses(t *testing.T) {
	const clients = 5
	for what, tt := range map[string]struct {
		manual bool
		wait   time.Duration
	}{
		"answered":     {false, 0},
		"not answered": {true, 2 * longestTurn}, // the third goes with the second, as one more may be on its way
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				list := largeServices()
				f := serve(t, ads.Options{LargeResponses: 1}, list...)
				f.flush()
				begun := time.Now()
				for range clients {
					c := f.client(xdstest.ClientOptions{Node: node("a", "shop"), Delta: true, Manual: tt.manual})
					f.subscribe(c, envoy.ClusterType)
					r, err := c.Next(f.context())
					if err != nil {
						t.Fatal(err)
					}
					check(t, "clusters", len(r.Resources), len(list))
					synctest.Wait()
				}
				check(t, "time that it took", time.Since(begun), tt.wait)
				f.stopNow()
			})
		})
	}
}

// TestTurnOfAClientThatLeaves: a client that leaves without an answer keeps nobody
// waiting, and is not one that is late.
func TestTurnOfAClientThatLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := serve(t, ads.Options{LargeResponses: 1}, largeServices()...)
		f.flush()
		begun := time.Now()
		for range 5 {
			c := f.client(xdstest.ClientOptions{Node: node("a", "shop"), Delta: true, Manual: true})
			f.subscribe(c, envoy.ClusterType)
			if _, err := c.Next(f.context()); err != nil {
				t.Fatal(err)
			}
			c.Close()
			f.left()
		}
		check(t, "time that it took", time.Since(begun), time.Duration(0))
	})
}

// TestLargeResponsesOfOneStream: a stream does not wait for its own turn to end.
func TestLargeResponsesOfOneStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := serve(t, ads.Options{LargeResponses: 1}, service("a", "shop"))
		f.flush()
		c := f.client(xdstest.ClientOptions{Node: node("a", "shop"), Delta: true, Manual: true})
		types := []string{envoy.ClusterType, envoy.LoadAssignmentType}
		for _, typeURL := range types {
			f.subscribe(c, typeURL, "*")
			r, err := c.Next(f.context())
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Ack(r); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		begun, list := time.Now(), largeServices()
		var hosts []string
		for _, s := range list {
			hosts = append(hosts, string(s.Hostname))
		}
		f.define(hosts, append(list, service("a", "shop"))...)
		for _, typeURL := range types {
			r, err := c.Next(f.context())
			if err != nil {
				t.Fatal(err)
			}
			check(t, "type", r.TypeURL, typeURL)
			check(t, "resources", len(r.Resources), len(list))
		}
		check(t, "time that it took", time.Since(begun), time.Duration(0))
	})
}
