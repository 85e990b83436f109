// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"strings"
	"testing"
)

const (
	hiddenService = "metadata: {annotations: {networking.istio.io/exportTo: '~'}}"
	headless      = "spec: {clusterIP: None}"
	watchYes      = "discoverySelectors: [{matchLabels: {watch: 'yes'}}]"
	watched       = "metadata: {labels: {watch: 'yes'}}"
	zoneTraffic   = "metadata: {annotations: {networking.istio.io/traffic-distribution: PreferClose}}"
)

// A service that exists and is visible is reported with its endpoints; any other service is not
// reported.
func TestDecisionsOnServices(t *testing.T) {
	testDecisions(t, []decision{
		{row: "K17", is: "a service that is exported to nobody has no endpoints in the index", with: withEntries(), test: func(p *play) {
			p.apply(serviceObject("a"), sliceObject("s", "a", "10.0.0.1 p1"), podObject("p1", "10.0.0.1"))
			p.apply(serviceObject("a", hiddenService))
			p.is("hidden", p.calls(callSvcUpdate), "delete "+hostOf("a"))
			p.equal("the index knows it", p.known("a"), false)
			p.apply(podObject("p1", "10.0.0.1", version1), workloadEntry("w", "10.9.0.1"), serviceObject("a", hiddenService, sticky))
			p.equal("the index knows it after changes of pods and entries", p.known("a"), false)
			p.apply(sliceObject("s", "a", "10.0.0.2"))
			p.apply(serviceObject("a"))
			p.is("visible", p.calls(callSvcUpdate), "add "+hostOf("a"))
			p.is("endpoints as they are now", p.endpoints("a"), "10.0.0.2", "10.9.0.1")
		}},
		{row: "K18", is: "endpoints are reported when their service exists", test: func(p *play) {
			p.apply(sliceObject("s", "a", "10.0.0.1"))
			p.is("before", p.calls(callEDSUpdate))
			p.equal("the index knows it", p.known("a"), false)
			p.apply(serviceObject("a"))
			p.is("with it", p.endpoints("a"), "10.0.0.1")
		}},
		{row: "K18", is: "the deletion of a service removes its key for good", test: func(p *play) {
			p.apply(serviceObject("a"), sliceObject("s", "a", "10.0.0.1"))
			p.delete("Service", "a")
			p.apply(sliceObject("s", "a", "10.0.0.2"))
			p.is("a slice changes after it", p.calls(callEDSUpdate))
			p.equal("the index knows it", p.known("a"), false)
			p.apply(serviceObject("a"))
			p.is("it is made again", p.endpoints("a"), "10.0.0.2")
		}},
		{row: "K19", is: "a service that loses its last WorkloadEntry has no endpoints", with: withEntries(), test: func(p *play) {
			named := "spec: {ports: [{name: http, port: 80, protocol: TCP, targetPort: web}]}"
			for what, change := range map[string]string{
				"another selector": "spec: {selector: {app: b}}", "another type": headless, "another target port": named,
			} {
				p.apply(serviceObject("a"), workloadEntry("w", "10.9.0.1"))
				p.is("before "+what, p.endpoints("a"), "10.9.0.1")
				p.apply(serviceObject("a", change))
				p.is(what, p.calls(callSvcUpdate), "update "+hostOf("a"))
				p.is(what, p.endpoints("a"))
			}
		}},
		{row: "K20", is: "a WorkloadEntry leaves the services that its new labels do not match", with: withEntries(), test: func(p *play) {
			p.apply(serviceObject("a"), serviceObject("b"), workloadEntry("w", "10.9.0.1"))
			p.is("at first", append(p.endpoints("a", "labels.app"), p.endpoints("b")...), "10.9.0.1 a")
			p.apply(workloadEntry("w", "10.9.0.1", "spec: {labels: {app: b}}"))
			p.is("moved", append(p.endpoints("a"), p.endpoints("b", "labels.app")...), "10.9.0.1 b")
			p.apply(workloadEntry("w", "10.9.0.1", "spec: {labels: null}"))
			p.is("without labels", append(p.endpoints("a"), p.endpoints("b")...))
		}},
		{row: "K21", is: "ports of one number are distinguished by name", with: withEntries(), test: func(p *play) {
			ports := "spec: {ports: [{name: dns, port: 53, protocol: UDP, targetPort: 5353}, {name: dns-tcp, port: 53, protocol: TCP, targetPort: 5300}]}"
			p.apply(serviceObject("a", ports), workloadEntry("w", "10.9.0.1"))
			p.is("endpoints", p.endpoints("a", "servicePortName", "endpointPort"), "10.9.0.1 dns 5353", "10.9.0.1 dns-tcp 5300")
			p.is("its proxy", p.targets(proxySpec{IP: "10.9.0.1", Namespace: "ns"}), "a dns 5353", "a dns-tcp 5300")
			p.apply(podObject("p1", "10.0.0.1"))
			p.is("the proxy of a pod", p.targets(proxySpec{Pod: "p1", IP: "10.0.0.1", Namespace: "ns"}), "a dns 5353", "a dns-tcp 5300")
		}},
		{row: "K42", is: "the deletion of a namespace removes what was seen of it", with: scenarioOpts{MeshConfig: watchYes}, test: func(p *play) {
			objects := []string{serviceObject("a"), sliceObject("s", "a", "10.0.0.1 p1"), podObject("p1", "10.0.0.1")}
			p.apply(append(objects, namespaceObject("ns", watched))...)
			p.is("watched", p.endpoints("a"), "10.0.0.1")
			p.delete("Namespace", "ns")
			p.is("handlers of workloads", p.notified(), "delete p1")
			p.equal("the service", p.service("a", "name"), "none")
			p.equal("the index knows it", p.known("a"), false)
			for _, ref := range [][2]string{{"Service", "a"}, {"EndpointSlice", "s"}, {"Pod", "p1"}} {
				p.delete(ref[0], ref[1])
			}
			p.apply(namespaceObject("ns", watched))
			p.equal("the service in the namespace made again", p.service("a", "name"), "none")
			p.equal("the index knows it", p.known("a"), false)
		}},
		{row: "K42", is: "the deletion of an object is seen whatever its namespace", with: scenarioOpts{MeshConfig: watchYes}, test: func(p *play) {
			p.apply(namespaceObject("ns", watched), serviceObject("a"), sliceObject("s", "a", "10.0.0.1"))
			p.apply(namespaceObject("ns"))
			p.delete("Service", "a")
			p.apply(namespaceObject("ns", watched))
			p.equal("the service", p.service("a", "name"), "none")
		}},
		{row: "K43", is: "a namespace that is not watched any more leaves no key", with: scenarioOpts{MeshConfig: watchYes}, test: func(p *play) {
			p.apply(namespaceObject("ns", watched), serviceObject("a"), sliceObject("s", "a", "10.0.0.1"))
			p.apply(namespaceObject("ns"))
			p.is("the service goes", p.calls(callSvcUpdate), "delete "+hostOf("a"))
			p.equal("the index knows it", p.known("a"), false)
			p.apply(sliceObject("s", "a", "10.0.0.2"))
			p.equal("the index knows it after a change", p.known("a"), false)
			p.apply(namespaceObject("ns", watched))
			p.is("watched again", p.endpoints("a"), "10.0.0.2")
		}},
		{row: "K44", is: "the traffic distribution of services follows their namespace", test: func(p *play) {
			p.apply(serviceObject("a"))
			p.equal("without a namespace", p.service("a", "trafficDistribution"), "-")
			p.apply(namespaceObject("ns", zoneTraffic))
			p.equal("a late namespace", p.service("a", "trafficDistribution"), "PreferSameZone")
			p.is("reported", p.calls(callSvcUpdate), "update "+hostOf("a"))
			p.delete("Namespace", "ns")
			p.equal("a deleted one", p.service("a", "trafficDistribution"), "-")
		}},
		{row: "K45", is: "empty items of exportTo are dropped, nonsense stays", test: func(p *play) {
			p.apply(serviceObject("a", "metadata: {annotations: {networking.istio.io/exportTo: '., ,nonsense!,'}}"))
			p.equal("exportTo", p.service("a", "exportTo"), ". nonsense!")
		}},
		{row: "K53", is: "a headless service is pushed when its endpoints changed, and not else", test: func(p *play) {
			p.apply(serviceObject("a", headless), sliceObject("s", "a", "10.0.0.1"))
			p.apply(newObject(sliceText("s", "a", "10.0.0.1"), "metadata: {annotations: {touched: 'yes'}}"))
			p.is("a slice that says the same", p.calls(callConfigUpdate))
			p.apply(serviceObject("a", headless, version1))
			p.is("a service with the same endpoints", p.calls(callConfigUpdate), "service forced=false")
			p.apply(sliceObject("s", "a", "10.0.0.1", "10.0.0.2"))
			p.is("another one", p.calls(callConfigUpdate), "headlessendpoint forced=false")
		}},
		{row: "K3 K6 K13 K18", is: "the order of arrival does not matter", test: func(p *play) {
			objects := []string{
				serviceObject("a", sticky), podObject("p1", "10.0.0.1", "spec: {nodeName: n1}"), podObject("p2", "10.0.0.2"),
				nodeObject("n1", "", "metadata: {labels: {topology.kubernetes.io/region: r1}}"),
				sliceObject("s", "a", "10.0.0.1 p1", "{addresses: [10.0.0.2], conditions: {ready: false, serving: true, terminating: true}}"),
			}
			want := []string{"10.0.0.1 r1// p1 Healthy", "10.0.0.2 - p2 Draining"}
			everyOrder(objects, func(inOrder []string) {
				q := newPlay(p.T, scenarioOpts{}, nil, false)
				q.apply(inOrder...)
				q.is("after "+strings.Join(inOrder, ""), q.endpoints("a", "locality", "workloadName", "healthStatus"), want...)
			})
		}},
	})
}
