// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"slices"
	"testing"

	"github.com/pilotkit/pilotkit/registry"
)

func twoClusters() []clusterSpec { return []clusterSpec{{ID: "two"}} }

// Several clusters under one aggregate, with a ServiceEntry registry that selects
// their pods.
func TestDecisionsOnClusters(t *testing.T) {
	testDecisions(t, []decision{
		{row: "K25", is: "a selected pod of another cluster gets ProxyUpdate for its cluster", with: withEntries(), more: twoClusters(), test: func(p *play) {
			p.apply(serviceEntry("e.example.com"))
			p.applyTo("two", podObject("q1", "10.2.0.1"))
			p.is("its endpoint", p.endpoints("e.example.com", "clusterID"), "10.2.0.1 two")
			p.is("ProxyUpdate", p.calls(callProxyUpdate), "two 10.2.0.1")
			p.applyTo("two", podObject("q1", "10.2.0.1", "metadata: {labels: {app: b}}"))
			p.is("ProxyUpdate when it is selected no more", p.calls(callProxyUpdate), "two 10.2.0.1")
		}},
		{row: "K26", is: "a removed cluster takes its pods and WorkloadEntries out of ServiceEntries", with: withEntries(), more: twoClusters(), test: func(p *play) {
			p.apply(serviceEntry("e.example.com"))
			p.applyTo("two", podObject("q1", "10.2.0.1"), podObject("q2", "10.2.0.2"), workloadEntry("w", "10.9.0.1"))
			p.is("before", p.endpoints("e.example.com"), "10.2.0.1", "10.2.0.2", "10.9.0.1")
			var notified []string
			p.sys.registry.SubscribeWorkloads(func(w *registry.WorkloadInstance, e registry.Event) {
				notified = append(notified, e.String()+" "+w.Name)
			})
			p.sys.catchUp()
			notified = nil
			p.lifecycle("removeCluster", "two")
			slices.Sort(notified)
			p.is("handlers of the aggregate", notified, "delete q1", "delete q2", "delete w")
			p.is("removed", p.endpoints("e.example.com"))
			p.step(step{Cluster: "two", Delete: &objectRef{Kind: "Pod", Namespace: "ns", Name: "q2"}})
			p.lifecycle("addCluster", "two")
			p.is("added without one of them", p.endpoints("e.example.com"), "10.2.0.1", "10.9.0.1")
		}},
		{row: "K26", is: "a replaced registry hands its workloads over", with: withEntries(), more: twoClusters(), test: func(p *play) {
			p.apply(serviceEntry("e.example.com"))
			p.applyTo("two", podObject("q1", "10.2.0.1"), podObject("q2", "10.2.0.2"))
			two := p.sys.clusters[1]
			delete(two.objects, objectRef{Kind: "Pod", Namespace: "ns", Name: "q2"}) // which the former registry does not see
			p.lifecycle("replaceCluster", "two")
			p.is("after it", p.endpoints("e.example.com"), "10.2.0.1")
		}},
		{row: "K27", is: "pods of one name in two clusters are two workloads", with: withEntries(), more: twoClusters(), test: func(p *play) {
			p.apply(serviceEntry("e.example.com"), podObject("p1", "10.1.0.1"))
			p.applyTo("two", podObject("p1", "10.2.0.1"))
			p.is("both", p.endpoints("e.example.com", "clusterID"), "10.1.0.1 one", "10.2.0.1 two")
			p.delete("Pod", "p1")
			p.is("one is deleted", p.endpoints("e.example.com", "clusterID"), "10.2.0.1 two")
		}},
		{row: "K27", is: "a pod and a WorkloadEntry of one name are two workloads", with: withEntries(), test: func(p *play) {
			p.apply(serviceEntry("e.example.com"), podObject("same", "10.1.0.1"), workloadEntry("same", "10.9.0.1"))
			p.is("both", p.endpoints("e.example.com"), "10.1.0.1", "10.9.0.1")
			p.delete("WorkloadEntry", "same")
			p.is("the entry is deleted", p.endpoints("e.example.com"), "10.1.0.1")
		}},
		{row: "K28", is: "gateways of a removed cluster go with a call of the handlers", more: twoClusters(), test: func(p *play) {
			p.applyTo("two", loadBalancer("1.2.3.4"))
			p.is("before", p.gateways(), "net 1.2.3.4 15443")
			p.lifecycle("removeCluster", "two")
			p.is("after", p.gateways())
			p.equal("handlers were called", p.sys.gatewayCalls > 0, true)
		}},
		{row: "K29", is: "external addresses of a service are those of all clusters", more: twoClusters(), test: func(p *play) {
			p.apply(loadBalancer("1.2.3.4"))
			p.applyTo("two", loadBalancer("5.6.7.8"))
			got := p.sys.registry.GetService("gw.ns.svc.cluster.local").Attributes.ClusterExternalAddresses
			p.is("of the first", got["one"], "1.2.3.4")
			p.is("of the second", got["two"], "5.6.7.8")
		}},
	})
}

const gatewayLabel = "topology.istio.io/network: net"

func loadBalancer(addresses ...string) string {
	ingress := ""
	for _, a := range addresses {
		ingress += "{ip: " + a + "},"
	}
	return serviceObject("gw", "metadata: {labels: {"+gatewayLabel+"}}",
		"spec: {type: LoadBalancer, ports: [{name: tls, port: 15443, protocol: TCP, targetPort: 15443}]}",
		"status: {loadBalancer: {ingress: ["+ingress+"]}}")
}

// nodePortService is a gateway at nodes that a selector chooses.
func nodePortService(labels, selector string) string {
	return serviceObject("gw", "metadata: {labels: {"+labels+"}, annotations: {traffic.istio.io/nodeSelector: '"+selector+"'}}",
		"spec: {type: NodePort, ports: [{name: tls, port: 15443, protocol: TCP, targetPort: 15443, nodePort: 30443}]}")
}

const otherNetworks = "networks: {x: {endpoints: [{fromCidr: 172.16.0.0/12}]}}"

// Gateways are what labels, addresses, nodes and the mesh give now.
func TestDecisionsOnGateways(t *testing.T) {
	testDecisions(t, []decision{
		{row: "K31", is: "gateways go with the last address of their service", test: func(p *play) {
			p.apply(loadBalancer("1.2.3.4"))
			p.is("before", p.gateways(), "net 1.2.3.4 15443")
			p.apply(loadBalancer())
			p.is("without addresses", p.gateways())
			p.is("pushed", p.calls(callConfigUpdate), "networks forced=true", "service forced=false")
		}},
		{row: "K31", is: "gateways go with the type of their service", test: func(p *play) {
			p.apply(loadBalancer("1.2.3.4"))
			p.apply(serviceObject("gw", "metadata: {labels: {"+gatewayLabel+"}}"))
			p.is("a cluster IP service", p.gateways())
		}},
		{row: "K32", is: "a node that loses its external address is no gateway", test: func(p *play) {
			p.apply(nodePortService(gatewayLabel, ""), nodeObject("n1", "9.0.0.1"), nodeObject("n2", "9.0.0.2"))
			p.is("before", p.gateways(), "net 9.0.0.1 30443", "net 9.0.0.2 30443")
			p.apply(nodeObject("n1", ""))
			p.is("one lost it", p.gateways(), "net 9.0.0.2 30443")
		}},
		{row: "K33", is: "a node port gateway that becomes a load balancer has its addresses, also after node events", test: func(p *play) {
			p.apply(nodeObject("n1", "9.0.0.1"), nodePortService(gatewayLabel, ""))
			p.is("before", p.gateways(), "net 9.0.0.1 30443")
			p.apply(loadBalancer("1.2.3.4"))
			p.is("after", p.gateways(), "net 1.2.3.4 15443")
			p.apply(nodeObject("n2", "9.0.0.2"))
			p.is("after a node event", p.gateways(), "net 1.2.3.4 15443")
		}},
		{row: "K33", is: "a node port service without the annotation is no gateway", test: func(p *play) {
			p.apply(nodeObject("n1", "9.0.0.1"), nodePortService(gatewayLabel, ""))
			p.apply(newObject(nodePortText(), "metadata: {annotations: null}"))
			p.apply(nodeObject("n2", "9.0.0.2"))
			p.is("after a node event", p.gateways())
		}},
		{row: "K34", is: "a change of the mesh networks keeps the gateways at nodes", test: func(p *play) {
			p.apply(nodeObject("n1", "9.0.0.1"), nodePortService(gatewayLabel, ""))
			p.networks(otherNetworks)
			p.is("after it", p.gateways(), "net 9.0.0.1 30443")
		}},
		{row: "K34", is: "a node port service that the mesh networks name is a gateway at once", test: func(p *play) {
			p.apply(nodeObject("n1", "9.0.0.1"), nodePortService("", ""))
			p.networks("networks: {named: {endpoints: [{fromRegistry: one}], gateways: [{registryServiceName: gw.ns.svc.cluster.local, port: 15443}]}}")
			p.is("after it", p.gateways(), "named 9.0.0.1 30443")
		}},
		{row: "K35", is: "everything is pushed only when gateways changed", test: func(p *play) {
			p.apply(nodeObject("n1", "9.0.0.1"), nodePortService(gatewayLabel, ""))
			p.apply(nodePortService(gatewayLabel+", more: labels", ""))
			if slices.Contains(p.calls(callConfigUpdate), "networks forced=true") {
				p.Error("an update of a service forces a push of everything")
			}
			p.apply(newObject(nodePortText(), "metadata: {name: plain, labels: null}"))
			p.apply(nodeObject("n1", "9.0.0.1", "metadata: {labels: {any: thing}}"))
			for _, c := range p.calls(callConfigUpdate) {
				p.Errorf("a node whose address stays: ConfigUpdate %s", c)
			}
		}},
		{row: "K36", is: "a node selector that is not JSON selects no node", test: func(p *play) {
			p.apply(nodeObject("n1", "9.0.0.1"), nodePortService(gatewayLabel, "nonsense"))
			p.is("gateways", p.gateways())
			p.equal("external addresses", p.service("gw", "clusterExternalAddresses"), "-")
		}},
		{row: "K37", is: "a node port service has the addresses of the selected nodes, sorted", test: func(p *play) {
			p.apply(nodeObject("n3", "9.0.0.1", "metadata: {labels: {gw: 'yes'}}"), nodeObject("n2", "9.0.0.9"))
			p.apply(nodeObject("n1", "9.0.0.3", "metadata: {labels: {gw: 'yes'}}"), nodePortService(gatewayLabel, `{"gw": "yes"}`))
			p.equal("external addresses", p.service("gw", "clusterExternalAddresses"), "map[one:[9.0.0.1 9.0.0.3]]")
		}},
		{row: "K39", is: "the smallest range of an address counts, of equal ones the first network by name", test: func(p *play) {
			p.apply(serviceObject("a"), sliceObject("s", "a", "10.0.0.1", "10.7.0.1"))
			for _, order := range []string{
				"b: {endpoints: [{fromCidr: 10.0.0.0/8}]}, c: {endpoints: [{fromCidr: 10.7.0.0/16}]}, a: {endpoints: [{fromCidr: 10.0.0.0/8}]}",
				"c: {endpoints: [{fromCidr: 10.7.0.0/16}]}, a: {endpoints: [{fromCidr: 10.0.0.0/8}]}, b: {endpoints: [{fromCidr: 10.0.0.0/8}]}",
			} {
				p.networks("networks: {" + order + "}")
				p.is("networks", p.endpoints("a", "network"), "10.0.0.1 a", "10.7.0.1 c")
			}
		}},
		{row: "K39", is: "of networks that claim a cluster the first by name counts", test: func(p *play) {
			p.apply(serviceObject("a"), sliceObject("s", "a", "10.0.0.1"))
			p.networks("networks: {b: {endpoints: [{fromRegistry: one}]}, a: {endpoints: [{fromRegistry: one}]}}")
			p.is("network", p.endpoints("a", "network"), "10.0.0.1 a")
		}},
		{row: "K61", is: "mesh networks that are emptied leave no ranges", test: func(p *play) {
			p.apply(serviceObject("a"), sliceObject("s", "a", "172.16.0.1"))
			p.networks(otherNetworks)
			p.is("before", p.endpoints("a", "network"), "172.16.0.1 x")
			p.networks("{}")
			p.is("after", p.endpoints("a", "network"), "172.16.0.1 -")
		}},
	})
}

func nodePortText() string {
	text := nodePortService(gatewayLabel, "")
	return text[:len(text)-len("---\n")]
}
