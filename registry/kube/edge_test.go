// SPDX-License-Identifier: Apache-2.0

package kube_test

import "testing"

// Values at the edge of what a field may have, read as Istio's registry reads them.
func TestEdges(t *testing.T) {
	sameNode := "metadata: {annotations: {networking.istio.io/traffic-distribution: PreferSameNode}}"
	testDecisions(t, []decision{
		{row: "service", is: "only one of type ExternalName has an external name", test: func(p *play) {
			p.apply(serviceObject("a", "spec: {externalName: e.example.com}"))
			p.equal("of type ClusterIP", p.service("a", "externalName", "resolution"), "- ClientSide")
			p.apply(serviceObject("a", "spec: {externalName: e.example.com, type: ExternalName}"))
			p.equal("of type ExternalName", p.service("a", "externalName", "resolution"), "e.example.com Alias")
		}},
		{row: "service", is: "an empty traffic distribution is none", test: func(p *play) {
			p.apply(namespaceObject("ns", sameNode))
			for value, want := range map[string]string{"": "PreferSameNode", "nonsense": "-"} {
				p.apply(serviceObject("a", "metadata: {annotations: {networking.istio.io/traffic-distribution: '"+value+"'}}"))
				p.equal("annotation "+value, p.service("a", "trafficDistribution"), want)
			}
		}},
		{row: "service", is: "a selector that loses an empty label selects by the others", with: withEntries(), test: func(p *play) {
			empty := "spec: {labels: {app: null, tier: ''}}"
			p.apply(serviceObject("a", "spec: {selector: {app: null, tier: ''}}"), workloadEntry("w", "10.9.0.1", empty))
			p.is("by the empty label", p.endpoints("a"), "10.9.0.1")
			p.apply(serviceObject("a"), workloadEntry("v", "10.9.0.2"))
			p.is("by another label", p.endpoints("a"), "10.9.0.2")
			p.is("the proxy", p.targets(proxySpec{IP: "10.9.0.2", Namespace: "ns"}), "a http 8080")
			p.apply(serviceObject("a", "spec: {selector: null}"))
			p.is("without a selector", append(p.endpoints("a"), p.targets(proxySpec{IP: "10.9.0.1", Namespace: "ns"})...))
		}},
		{row: "pod", is: "an empty label for the name of the workload is its name", test: func(p *play) {
			p.apply(serviceObject("a"), podObject("p1", "10.0.0.1", "metadata: {labels: {service.istio.io/workload-name: ''}}"))
			p.is("notified", p.notified("workloadName"), "add p1 -")
			p.apply(sliceObject("s", "a", "10.0.0.1 p1"))
			p.is("endpoints", p.endpoints("a", "workloadName"), "10.0.0.1 -")
		}},
		{row: "pod", is: "an empty label for the locality hides its older name, but not the node", test: func(p *play) {
			p.apply(serviceObject("a"), sliceObject("s", "a", "10.0.0.1 p1"))
			p.apply(nodeObject("n1", "", "metadata: {labels: {topology.kubernetes.io/region: r1}}"))
			for node, want := range map[string]string{"n1": "r1//", "none": "-"} {
				labels := "metadata: {labels: {topology.istio.io/locality: '', istio-locality: old}}"
				p.apply(podObject("p1", "10.0.0.1", labels, "spec: {nodeName: "+node+"}"))
				p.is("on node "+node, p.endpoints("a", "locality"), "10.0.0.1 "+want)
			}
		}},
	})
}

// A namespace that is gone is forgotten, in whatever order its objects go. Pods alone keep nothing of a
// namespace, and follow the mesh all the same.
func TestNamespacesThatAreGone(t *testing.T) {
	forgotten := func(p *play, when string) {
		n, err := p.sys.clusters[0].kube.Spaces(p.Context())
		if err != nil {
			p.Fatal(err)
		}
		p.equal("namespaces "+when, n, 0)
	}
	var decisions []decision
	for _, first := range []string{"Namespace", "Service", "EndpointSlice", "Pod"} {
		decisions = append(decisions, decision{row: "namespace", is: "gone with the " + first + " first", test: func(p *play) {
			p.apply(namespaceObject("ns"), serviceObject("a"), sliceObject("s", "a", "10.0.0.1 p1", "10.0.0.2 p2"), podObject("p1", "10.0.0.1"))
			objects := map[string]string{"Service": "a", "EndpointSlice": "s", "Pod": "p1", "Namespace": "ns"}
			p.delete(first, objects[first])
			delete(objects, first)
			for kind, name := range objects {
				p.delete(kind, name)
			}
			forgotten(p, "without objects")
		}})
	}
	decisions = append(decisions, decision{row: "namespace", is: "of pods alone", test: func(p *play) {
		p.apply(podObject("p1", "10.0.0.1"))
		forgotten(p, "of pods")
		p.mesh(watchYes)
		p.is("not watched", p.notified(), "delete p1")
		p.mesh("")
		p.is("watched again", p.notified(), "add p1")
		p.delete("Pod", "p1")
		forgotten(p, "without objects")
	}})
	testDecisions(t, decisions)
}

func TestProxyEdges(t *testing.T) {
	byAddress := scenarioOpts{}
	byAddress.Features.ProxyFindPodByIP = true
	testDecisions(t, []decision{
		{row: "proxy", is: "slices of another namespace than the proxy's do not count", with: byAddress, test: func(p *play) {
			p.apply(serviceObject("manual", "spec: {selector: null}"), podObject("p1", "10.0.0.1"), sliceObject("s", "manual", "10.0.0.1"))
			p.is("in the namespace of the pod", p.targets(proxySpec{IP: "10.0.0.1", Namespace: "ns"}), "manual http 8080")
			p.is("in an unknown namespace", p.targets(proxySpec{IP: "10.0.0.1"}), "manual http 8080")
			p.is("in another namespace", p.targets(proxySpec{IP: "10.0.0.1", Namespace: "other"}))
		}},
	})
}

func TestGatewayEdges(t *testing.T) {
	gateway := func(label string, ports ...string) string {
		all := ""
		for _, port := range ports {
			all += "{" + port + "},"
		}
		return serviceObject("gw", "metadata: {labels: {"+gatewayLabel+label+"}}",
			"spec: {type: LoadBalancer, ports: ["+all+"]}", "status: {loadBalancer: {ingress: [{ip: 1.2.3.4}]}}")
	}
	mtls, tunnels := "name: tls, port: 15443, protocol: TCP", "name: hbone, port: 15008, protocol: TCP"
	testDecisions(t, []decision{
		{row: "gateway", is: "a port for UDP is none", test: func(p *play) {
			p.apply(gateway("", "name: tls, port: 15443, protocol: UDP", tunnels))
			p.is("for TLS", p.gatewayPorts(), "- 15008")
			p.apply(gateway("", mtls, "name: udp, port: 15008, protocol: TCP"))
			p.is("for tunnels", p.gatewayPorts(), "15443 -")
			p.apply(gateway("", "name: udp, port: 15443, protocol: UDP", mtls))
			p.is("beside one for TCP", p.gatewayPorts(), "15443 -")
		}},
		{row: "gateway", is: "a port in a label that no service can have is no port", test: func(p *play) {
			for label, want := range map[string]string{"'99999'": "- 15008", "x": "15443 15008", "''": "15443 15008", "'0443'": "443 15008"} {
				p.apply(gateway(", networking.istio.io/gatewayPort: "+label, mtls, tunnels, "name: other, port: 443, protocol: TCP"))
				p.is("label "+label, p.gatewayPorts(), want)
			}
		}},
		{row: "gateway", is: "external addresses of a node port service replace those of nodes", test: func(p *play) {
			p.apply(nodeObject("n1", "9.0.0.1"), nodePortService(gatewayLabel, ""))
			p.is("of nodes", p.gateways(), "net 9.0.0.1 30443")
			p.apply(newObject(nodePortText(), "spec: {externalIPs: [1.2.3.4]}"))
			p.is("its own", p.gateways(), "net 1.2.3.4 30443")
			p.equal("of the service", p.service("gw", "clusterExternalAddresses"), "map[one:[1.2.3.4]]")
		}},
		{row: "gateway", is: "the port for tunnels is no port of nodes", test: func(p *play) {
			ports := "spec: {ports: [{name: tls, port: 15443, protocol: TCP, nodePort: 30443}, {name: hbone, port: 15008, protocol: TCP, nodePort: 30008}]}"
			p.apply(nodeObject("n1", "9.0.0.1"), newObject(nodePortText(), ports))
			p.is("ports", p.gatewayPorts(), "30443 15008")
		}},
	})
}

// gatewayPorts returns the ports of the network gateways of the aggregate.
func (p *play) gatewayPorts() []string {
	var out []string
	for _, g := range viewGateways(p.sys) {
		out = append(out, words(g, "port", "hbonePort"))
	}
	return out
}
