// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"testing"
	"testing/synctest"

	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// shopProvider has another moment only in the namespace "shop".
type shopProvider struct {
	*momentProvider
	asked map[string]int // how often, by namespace and type
}

func (p *shopProvider) Provide(push *ads.PushContext) (ads.Provided, ads.Changes) {
	provided, changes := p.momentProvider.Provide(push)
	changes.Namespaces = map[string]struct{}{"shop": {}}
	changes.Everything = func(v ads.View, typeURL string) bool {
		p.asked[v.Namespace+" "+short(typeURL)]++
		return true
	}
	return provided, changes
}

// TestNamespacesOfChanges: of a change in a namespace the provider is asked about the views of that namespace
// only, about each type once,
// and clients of others are sent nothing.
func TestNamespacesOfChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &shopProvider{newMomentProvider(), make(map[string]int)}
		f := serveDiscovery(t, ads.Options{Providers: []ads.Provider{p}}, nil)
		f.flush()
		var clients []*xdstest.Client
		for _, namespace := range []string{"shop", "crew"} {
			c := f.client(xdstest.ClientOptions{Delta: true, Node: node(namespace, namespace), Answer: acceptAny})
			for _, typeURL := range []string{envoy.ClusterType, envoy.ListenerType} {
				f.subscribe(c, typeURL)
				f.await(c, typeURL, "always", "at 1")
			}
			clients = append(clients, c)
		}
		clear(p.asked)
		p.next()
		f.flush()
		synctest.Wait()
		check(t, "the one of the namespace", momentsOf(t, clients[0], envoy.ListenerType), map[string]string{"always": "2", "at 2": "2"})
		check(t, "the other one", momentsOf(t, clients[1], envoy.ListenerType), map[string]string{"always": "1", "at 1": "1"})
		check(t, "asked", p.asked, map[string]int{"shop CDS": 1, "shop LDS": 1})
	})
}
