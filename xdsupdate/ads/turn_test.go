// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"fmt"
	"testing"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// TestLargeResponses: with one large response at a time, clients that never answer
// do not keep others from theirs, nor the server from ending.
func TestLargeResponses(t *testing.T) {
	list := make([]*registry.Service, 500)
	for i := range list {
		list[i] = service(fmt.Sprintf("service-%05d.example.com", i), "shop")
	}
	f := serve(t, ads.Options{LargeResponses: 1}, list...)
	f.flush()
	for range 5 {
		c := f.client(xdstest.ClientOptions{Node: node("a", "shop"), Delta: true, Manual: true})
		f.subscribe(c, envoy.ClusterType)
		r, err := c.Next(f.context())
		if err != nil {
			t.Fatal(err)
		}
		check(t, "clusters", len(r.Resources), len(list))
	}
	f.stopNow()
}
