// SPDX-License-Identifier: Apache-2.0

package gatewayapi_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/kube/gatewayapi"
	"github.com/pilotkit/pilotkit/configstore/manifest"
	"github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/registry/serviceentry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// TestBatchIsOneRoot: a batch of an HTTPRoute, a VirtualService and a ServiceEntry is in a root as a
// whole, with what results from it, also while others read the cache.
func TestBatchIsOneRoot(t *testing.T) {
	objects := memory.NewController(memory.Make(gatewayapi.DirectorySchemas().Union(istio.Schemas())))
	commit := func(version int) {
		text := shop + `
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: own, namespace: shop}
spec:
  hosts: [own.example.com]
  http: [{match: [{uri: {prefix: /VERSION}}], route: [{destination: {host: cart.internal}}]}]
`
		text = strings.NewReplacer("hostnames: [cart.example.com]\n  rules: [{", "hostnames: [cart.example.com]\n  rules: [{matches: [{path: {type: PathPrefix, value: /VERSION}}], ",
			"hosts: [cart.internal]", "hosts: [cart.internal]\n  addresses: [240.0.0.VERSION]").Replace(text)
		var batch []configstore.Mutation
		for _, doc := range manifest.Parse(objects.Schemas(), []byte(strings.ReplaceAll(text, "VERSION", fmt.Sprint(version))), manifest.Options{}) {
			if doc.Err != nil {
				t.Fatal(doc.Err)
			}
			batch = append(batch, configstore.Mutation{Op: configstore.OpUpsert, Config: doc.Config})
		}
		if _, err := objects.Apply(batch...); err != nil {
			t.Fatal(err)
		}
	}
	cache := gatewayapi.NewCache(objects, gatewayapi.CacheOptions{Infrastructure: machine{}})
	var services *serviceentry.Controller
	var configs *xdsupdate.Configs
	var root *xdsupdate.Root
	var seen []string
	pusher := xdsupdate.NewPusher(func(*xdsupdate.PushRequest) {
		versions := map[string]string{}
		for key, config := range root.ConfigsSince(nil, configs) {
			for _, r := range config.Spec.(*networking.VirtualService).GetHttp() {
				for _, m := range r.GetMatch() {
					versions[key.Name] = m.GetUri().GetPrefix()
				}
			}
		}
		list, _ := services.ServicesAt(services, root)
		for _, s := range list.List() {
			versions["service"] = strings.Replace(s.DefaultAddress, "240.0.0.", "/", 1)
		}
		for _, v := range versions {
			if len(versions) != 3 || v != versions["own"] {
				t.Errorf("a root has the versions %v", versions)
			}
		}
		seen = append(seen, versions["own"])
	}, xdsupdate.PusherOptions{Debounce: xdsupdate.Debounce{After: -1}, Capture: func(_ *xdsupdate.PushRequest, r *xdsupdate.Root) bool {
		root = r
		return true
	}})
	commit(1)
	stop := make(chan struct{})
	var running sync.WaitGroup
	defer running.Wait()
	defer close(stop)
	configs = xdsupdate.FollowConfigs(pusher, cache, []configstore.GroupVersionKind{istio.VirtualService}, nil)
	services = serviceentry.New(cache, pusher)
	running.Go(func() { cache.Run(stop) })
	if err := configstore.WaitForSync(t.Context(), cache, services); err != nil {
		t.Fatal(err)
	}
	if err := cache.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	running.Go(func() { pusher.Run(stop) })
	for version := 2; version < 100; version++ {
		commit(version)
		cache.List(istio.VirtualService, "shop")
	}
	if err := cache.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := pusher.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(seen) < 2 || seen[len(seen)-1] != "/99" {
		t.Errorf("pushes of the versions %q", seen)
	}
}
