// SPDX-License-Identifier: Apache-2.0

package kube_test

import "testing"

func withEntries() scenarioOpts { return scenarioOpts{ServiceEntries: true} }

const (
	version1 = "metadata: {labels: {app: a, version: v1}}"
	version2 = "metadata: {labels: {app: a, version: v2}}"
)

// Endpoints and workloads follow pods and nodes.
func TestDecisionsOnPods(t *testing.T) {
	testDecisions(t, []decision{
		{row: "K8", is: "a pod that leaves a selector has its new labels in every service", test: func(p *play) {
			p.apply(serviceObject("a"), serviceObject("manual", "spec: {selector: null}"), podObject("p1", "10.0.0.1"))
			p.apply(sliceObject("s1", "a", "10.0.0.1 p1"), sliceObject("s2", "manual", "10.0.0.1 p1"))
			p.apply(podObject("p1", "10.0.0.1", "metadata: {labels: {app: other}}"))
			p.is("labels in a", p.endpoints("a", "labels.app"), "10.0.0.1 other")
			p.is("labels in manual", p.endpoints("manual", "labels.app"), "10.0.0.1 other")
			p.apply(podObject("p1", "10.0.0.1", "metadata: {labels: {app: other, security.istio.io/tlsMode: istio, topology.istio.io/network: net}}"))
			for _, service := range []string{"a", "manual"} {
				p.is(service, p.endpoints(service, "labels.app", "tlsMode", "network"), "10.0.0.1 other istio net")
			}
		}},
		{row: "K9", is: "labels that change while the pod is not ready are seen", test: func(p *play) {
			p.apply(serviceObject("a"), sliceObject("s", "a", "10.0.0.1 p1"), podObject("p1", "10.0.0.1", version1, unready))
			p.apply(podObject("p1", "10.0.0.1", version2, unready))
			p.is("while it is not ready", p.endpoints("a", "labels.version"), "10.0.0.1 v2")
		}},
		{row: "K9", is: "labels that change together with readiness are seen", test: func(p *play) {
			p.apply(serviceObject("a"), sliceObject("s", "a", "10.0.0.1 p1"), podObject("p1", "10.0.0.1", version1, unready))
			p.apply(podObject("p1", "10.0.0.1", version2))
			p.is("it became ready", p.endpoints("a", "labels.version"), "10.0.0.1 v2")
			p.is("handlers", p.notified("labels.version"), "add p1 v2")
			p.apply(podObject("p1", "10.0.0.1", version1, unready))
			p.is("it became unready", p.endpoints("a", "labels.version"), "10.0.0.1 v1")
			p.is("handlers", p.notified("labels.version"), "delete p1 v2")
		}},
		{row: "K10", is: "a changed node or account of a pod is in its endpoints without a change of the slice", test: func(p *play) {
			p.apply(serviceObject("a"), sliceObject("s", "a", "10.0.0.1 p1"), podObject("p1", "10.0.0.1"))
			p.apply(podObject("p1", "10.0.0.1", "spec: {nodeName: n1, serviceAccountName: other}"))
			p.is("endpoint", p.endpoints("a", "nodeName", "serviceAccount"), "10.0.0.1 n1 cluster.local/ns/ns/sa/other")
			p.is("handlers", p.notified("nodeName"), "update p1 n1")
			p.is("reported", p.calls(callEDSUpdate), hostOf("a"))
		}},
		{row: "K11", is: "endpoints and workloads follow a node that comes, changes and goes", test: func(p *play) {
			region := func(name string) string {
				return nodeObject("n1", "", "metadata: {labels: {topology.kubernetes.io/region: "+name+"}}")
			}
			p.apply(serviceObject("a"), sliceObject("s", "a", "10.0.0.1 p1"), podObject("p1", "10.0.0.1", "spec: {nodeName: n1}"))
			p.is("no node", p.endpoints("a", "locality"), "10.0.0.1 -")
			p.apply(region("r1"))
			p.is("it comes", p.endpoints("a", "locality"), "10.0.0.1 r1//")
			p.is("handlers", p.notified("locality"), "update p1 r1//")
			p.apply(region("r2"))
			p.is("it changes", p.endpoints("a", "locality"), "10.0.0.1 r2//")
			p.is("handlers", p.notified("locality"), "update p1 r2//")
			p.delete("Node", "n1")
			p.is("it goes", p.endpoints("a", "locality"), "10.0.0.1 -")
			p.is("handlers", p.notified("locality"), "update p1 -")
		}},
		{row: "K11", is: "endpoints of a ServiceEntry follow the node of a pod", with: withEntries(), test: func(p *play) {
			p.apply(serviceEntry("e.example.com"), podObject("p1", "10.0.0.1", "spec: {nodeName: n1}"))
			p.apply(nodeObject("n1", "", "metadata: {labels: {topology.kubernetes.io/region: r1}}"))
			p.is("endpoint", p.endpoints("e.example.com", "locality"), "10.0.0.1 r1//")
		}},
		{row: "K12", is: "identities follow the trust domain at once, in every cluster", more: []clusterSpec{{ID: "two"}}, test: func(p *play) {
			for _, cluster := range []string{"one", "two"} {
				p.applyTo(cluster, podObject("p1", "10.0.0.1"), sliceObject("s", "a", "10.0.0.1 p1"),
					serviceObject("a", "metadata: {annotations: {alpha.istio.io/kubernetes-serviceaccounts: clerk}}"))
			}
			p.mesh("trustDomain: td2")
			p.is("endpoints", p.endpoints("a", "clusterID", "serviceAccount"), "10.0.0.1 one td2/ns/ns/sa/sa", "10.0.0.1 two td2/ns/ns/sa/sa")
			p.is("reported", p.calls(callEDSUpdate), hostOf("a"))
			p.equal("accounts of the service", p.service("a", "serviceAccounts"), "td2/ns/ns/sa/clerk")
			for _, c := range p.sys.clusters {
				s := c.kube.GetService("a.ns.svc.cluster.local")
				p.is("accounts of the service of "+string(c.id), s.ServiceAccounts, "spiffe://td2/ns/ns/sa/clerk")
			}
		}},
		{row: "K16", is: "a pod that becomes unready with another address releases the former one", with: withEntries(), test: func(p *play) {
			p.apply(serviceObject("manual", "spec: {selector: null}"), sliceObject("s", "manual", "10.0.0.1"))
			p.apply(serviceEntry("e.example.com"), podObject("p1", "10.0.0.1"))
			p.apply(podObject("p1", "10.0.0.2", unready))
			p.is("handlers get a delete of what they know", p.notified("addresses"), "delete p1 10.0.0.1")
			p.is("endpoint of the ServiceEntry", p.endpoints("e.example.com"))
			p.is("endpoint at the former address", p.endpoints("manual", "workloadName"), "10.0.0.1 -")
		}},
		{row: "K16", is: "a pod that is deleted with another address releases the one it was known by", with: withEntries(), test: func(p *play) {
			p.apply(serviceEntry("e.example.com"), podObject("p1", "10.0.0.1"))
			p.apply(podObject("p1", "10.0.0.2", "metadata: {deletionTimestamp: '2024-01-01T00:00:00Z'}"))
			p.is("handlers", p.notified("addresses"), "delete p1 10.0.0.1")
			p.is("endpoint of the ServiceEntry", p.endpoints("e.example.com"))
		}},
		{row: "K41", is: "an unknown network gives no label, nor does an empty label", test: func(p *play) {
			p.apply(serviceObject("a"), sliceObject("s", "a", "10.0.0.1 p1", "10.0.0.2 p2", "10.0.0.3"))
			p.apply(podObject("p1", "10.0.0.1"), podObject("p2", "10.0.0.2", "metadata: {labels: {topology.istio.io/network: ''}}"))
			shard := p.sys.recorder.index.Service("a.ns.svc.cluster.local", "ns")
			n := 0
			for e := range shard.All() {
				n++
				if v, ok := e.Attributes().Labels["topology.istio.io/network"]; ok {
					p.Errorf("endpoint %s has the label of a network: %q", e.Address(), v)
				}
			}
			p.equal("endpoints", n, 3)
		}},
	})
}
