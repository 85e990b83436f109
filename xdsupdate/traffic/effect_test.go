// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

func TestIneffective(t *testing.T) {
	const (
		to      = `"route": [{"destination": {"host": "cart"}}]`
		all     = `"http": [{` + to + `}]`
		cart    = `VirtualService shop/cart {"hosts": ["cart"], ` + all + `}`
		edge    = `Gateway infra/edge {"selector": {"app": "edge"}, "servers": [{"hosts": ["*.example.com"], "port": {"number": 80, "name": "http", "protocol": "HTTP"}}]}`
		atEdge  = `VirtualService shop/edge {"hosts": ["shop.example.com"], "gateways": ["infra/edge"], ` + all + `}`
		noRoute = `VirtualService shop/cart {"hosts": ["cart"], "http": [{"route": [`
	)
	for _, tc := range []struct {
		name    string
		objects []string
		want    []string
	}{
		{"all of it counts", []string{cart, edge, atEdge, `DestinationRule shop/cart {"host": "cart", "subsets": [{"name": "v1", "labels": {"version": "v1"}}]}`}, nil},
		{
			"an unknown host",
			[]string{`VirtualService shop/x {"hosts": ["cart.shop"], ` + all + `}`},
			[]string{"VirtualService shop/x: spec.hosts[0]: no service has this host name; only sidecars serve it, on port 80"},
		},
		{
			"shadowed",
			[]string{cart, `VirtualService shop/later {"hosts": ["cart"], ` + all + `}`},
			[]string{
				"VirtualService shop/later: spec.hosts[0]: VirtualService shop/cart has this host too and is older",
				"VirtualService shop/later: no gateway or sidecar serves any of its hosts by it",
			},
		},
		{
			"a private one beats an older public one",
			[]string{cart, `VirtualService shop/later {"hosts": ["cart"], "exportTo": ["."], ` + all + `}`},
			nil,
		},
		{
			"not shadowed where the older one says nothing", []string{
				`VirtualService shop/cart {"hosts": ["cart"], "http": [{"match": [{"port": 81}], "route": [{"destination": {"host": "cart"}}]}]}`,
				`VirtualService shop/later {"hosts": ["cart"], ` + all + `}`,
			}, nil,
		},
		{
			"no Gateway",
			[]string{atEdge},
			[]string{
				"VirtualService shop/edge: spec.gateways[0]: there is no Gateway infra/edge",
				"VirtualService shop/edge: no gateway or sidecar serves any of its hosts by it",
			},
		},
		{
			"another host than the Gateway's",
			[]string{edge, `VirtualService shop/edge {"hosts": ["shop.example.org"], "gateways": ["infra/edge", "mesh"], ` + all + `}`},
			[]string{
				"Gateway infra/edge: spec.servers[0]: no VirtualService is for its hosts",
				"VirtualService shop/edge: spec.gateways[0]: no server of Gateway infra/edge has one of the hosts",
				"VirtualService shop/edge: spec.hosts[0]: no service has this host name; only sidecars serve it, on port 80",
			},
		},
		{
			"TCP routes of sidecars",
			[]string{`VirtualService shop/cart {"hosts": ["cart"], ` + all + `, "tcp": [{"route": [{"destination": {"host": "cart"}}]}]}`},
			[]string{"VirtualService shop/cart: spec.tcp: only gateways are configured for TCP routes"},
		},
		{
			"destinations",
			[]string{noRoute + `{"destination": {"host": "nobody"}}, {"destination": {"host": "cart", "subset": "v9"}}, {"destination": {"host": "cart", "port": {"number": 9}}}]}]}`},
			[]string{
				"VirtualService shop/cart: spec.http[0].route[0].destination.host: no service has the host name nobody.shop.svc.cluster.local: requests fail",
				`VirtualService shop/cart: spec.http[0].route[1].destination.subset: no DestinationRule for cart.shop.svc.cluster.local has a subset "v9": requests fail`,
				"VirtualService shop/cart: spec.http[0].route[2].destination.port: service cart.shop.svc.cluster.local has no port 9: requests fail",
			},
		},
		{
			"delegates",
			[]string{
				`VirtualService shop/cart {"hosts": ["cart"], "http": [{"delegate": {"name": "none"}}, {"delegate": {"name": "some"}}]}`,
				`VirtualService shop/some {` + all + `}`, `VirtualService shop/unused {` + all + `}`,
			},
			[]string{
				"VirtualService shop/cart: spec.http[0].delegate: there is no VirtualService shop/none that is exported to here",
				"VirtualService shop/unused: it has no hosts, and no VirtualService that it is exported to delegates to it",
			},
		},
		{
			"rules of a delegate",
			[]string{
				`VirtualService shop/cart {"hosts": ["cart"], "http": [{"match": [{"uri": {"prefix": "/a"}}], "delegate": {"name": "part"}}, {"match": [{"uri": {"prefix": "/b"}}], "delegate": {"name": "part"}}]}`,
				`VirtualService shop/part {"http": [
					{"match": [{"uri": {"exact": "/a/x"}}, {"uri": {"exact": "/b/x"}}], ` + to + `}, {"match": [{"uri": {"exact": "/b/y"}}], ` + to + `}, {` + to + `}]}`,
			},
			[]string{"VirtualService shop/part: spec.http[0]: no rule that delegates to it has a match for each of its matches"},
		},
		{
			"rules",
			[]string{
				`DestinationRule shop/a {"host": "cart", "trafficPolicy": {"loadBalancer": {"simple": "RANDOM"}}, "subsets": [{"name": "v1", "labels": {"version": "v1"}}]}`,
				`DestinationRule shop/b {"host": "cart", "trafficPolicy": {"loadBalancer": {"simple": "RANDOM"}}, "subsets": [{"name": "v1", "labels": {"version": "v1"}}, {"name": "v2", "labels": {"version": "v2"}}]}`,
				`DestinationRule shop/c {"host": "cart.shop"}`,
			},
			[]string{
				"DestinationRule shop/b: spec.trafficPolicy: that of DestinationRule shop/a, which is older, counts",
				`DestinationRule shop/b: spec.subsets[0]: DestinationRule shop/a, which is older, has a subset "v1"`,
				"DestinationRule shop/b: spec.subsets[1].labels: no endpoint of cart.shop.svc.cluster.local has the labels version=v2",
				"DestinationRule shop/c: spec.host: no service has the host name cart.shop",
			},
		},
		{
			"rules of several visibilities",
			[]string{
				`DestinationRule shop/a {"host": "cart", "exportTo": ["."]}`, `DestinationRule shop/b {"host": "cart"}`,
				`DestinationRule other/c {"host": "cart.shop.svc.cluster.local", "exportTo": ["billing"]}`,
			},
			[]string{
				"DestinationRule other/c: other namespaces see it, but it counts there only for services of its own namespace, and cart.shop.svc.cluster.local is none",
				"DestinationRule shop/a: DestinationRule shop/b is younger and for other namespaces, and counts instead",
			},
		},
		{
			"servers of Gateways",
			[]string{
				edge, atEdge,
				`Gateway infra/late {"selector": {"app": "edge"}, "servers": [{"hosts": ["*"], "port": {"number": 80, "name": "tcp", "protocol": "TCP"}}]}`,
			},
			[]string{"Gateway infra/late: spec.servers[0]: a server before it, or of an older Gateway, has port 80, or one of the hosts on it"},
		},
		{
			"Sidecars",
			[]string{
				`Sidecar shop/a {"egress": [{"hosts": ["./*", "billing/*"]}], "ingress": [{"port": {"number": 80, "protocol": "HTTP", "name": "http"}}]}`,
				`Sidecar shop/b {"egress": [{"hosts": ["*/*"]}]}`,
			},
			[]string{
				"Sidecar shop/a: spec.ingress: the inbound side of proxies is not configured",
				`Sidecar shop/a: spec.egress[0].hosts[1]: no service and no VirtualService is "billing/*"`,
				"Sidecar shop/b: Sidecar shop/a is for the same workloads and comes first",
			},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			svc := testService("shop", "cart.shop.svc.cluster.local", 80)
			services := populate(svc)
			services.place(svc, "10.0.0.1 version=v1")
			got := stage(t, traffic.Options{}, objectsOf(t, tc.objects...), services).ineffective()
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("without effect (-want +got):\n%s", diff)
			}
		})
	}
}
