// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"testing"
	"testing/synctest"

	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// TestStaleRequestOfASotWClient: a request with the nonce of an earlier response, or of
// none, is no answer to the last one: nothing in it counts, and the client is sent
// nothing before it has answered.
func TestStaleRequestOfASotWClient(t *testing.T) {
	for _, nonce := range []string{"", "stale"} {
		synctest.Test(t, func(t *testing.T) {
			f := serve(t, ads.Options{}, service("a", "shop"))
			f.flush()
			c := f.client(xdstest.ClientOptions{Manual: true, Node: node("a", "shop")})
			f.subscribe(c, envoy.ClusterType)
			first, err := c.Next(f.context())
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Ack(xdstest.Response{TypeURL: first.TypeURL, Version: first.Version, Nonce: nonce}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			f.define([]string{"b"}, service("a", "shop"), service("b", "shop"))
			f.flush()
			synctest.Wait()
			if n := len(c.Responses()); n != 1 {
				t.Errorf("nonce %q: %d responses, of which the first is not answered", nonce, n)
			}
			if got := f.Proxies()[0].Types[envoy.ClusterType]; got.Acked != "" || !got.Pending {
				t.Errorf("nonce %q: status %+v", nonce, got)
			}
			if err := c.Ack(first); err != nil {
				t.Fatal(err)
			}
			f.await(c, envoy.ClusterType, cluster("a")) // the second is not accepted yet
			second, err := c.Next(f.context())
			if err != nil {
				t.Fatal(err)
			}
			check(t, "then", second.Names(), []string{cluster("a"), cluster("b")})
		})
	}
}
