// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/manifest"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// TestConsumerRoutes: a VirtualService of a route of another namespace than the service's counts for the clients of that
// namespace, before that of the service's owner, and for nobody else, whichever is older; where it says nothing of a port, the
// owner's does.
func TestConsumerRoutes(t *testing.T) {
	const annotation = `metadata: {name: %s, namespace: %s, annotations: {internal.istio.io/route-semantics: gateway}}
`
	virtualService := func(name, namespace, spec string) string {
		return "apiVersion: networking.istio.io/v1\nkind: VirtualService\n" + fmt.Sprintf(annotation, name, namespace) +
			"spec: {gateways: [mesh], hosts: [db.bank.svc.cluster.local], " + spec + "}\n"
	}
	to := func(host string) string { return "route: [{destination: {host: " + host + "}}]" }
	text := virtualService("producer", "bank", "http: [{"+to("own.bank.svc.cluster.local")+"}]") + "---\n" +
		virtualService("consumer", "shop", `exportTo: ["."], http: [{match: [{port: 80}], `+to("evil.shop.svc.cluster.local")+"}]")
	for _, age := range []int{-1, 1} {
		s := stage(t, traffic.Options{}, nil, populate(
			testService("bank", "db.bank.svc.cluster.local", 80, 81), testService("bank", "own.bank.svc.cluster.local", 80),
			testService("shop", "evil.shop.svc.cluster.local", 80)))
		configs, err := manifest.ParseAll(istio.Schemas(), []byte(text), manifest.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var list configList
		for i := range configs {
			configs[i].CreationTimestamp = time.Date(2026, 1, 1, 0, 0, 10+i*age, 0, time.UTC)
			list = append(list, &configs[i])
		}
		s.change(list)
		for _, client := range []string{"sidecar", "grpc"} {
			for namespace, want := range map[string][2]string{
				"shop": {"shop/consumer", "bank/producer"}, "bank": {"bank/producer", "bank/producer"}, "third": {"bank/producer", "bank/producer"},
			} {
				for i, port := range []uint32{80, 81} {
					e := s.explain(in(client, namespace, "app=a"), traffic.Call{Host: "db.bank.svc.cluster.local", Port: port, Path: "/"})
					if e.VirtualService != want[i] {
						t.Errorf("age %d, %s of %s, port %d: %q, want %q", age, client, namespace, port, e.VirtualService, want[i])
					}
				}
			}
		}
	}
}
