// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"fmt"
	"testing"
)

const sticky = "metadata: {labels: {istio.io/persistent-session: cookie}}"

func dualStack() scenarioOpts {
	o := scenarioOpts{}
	o.Features.DualStack = true
	return o
}

// Endpoints of slices are a function of the slices, services and pods as they are
// now.
func TestDecisionsOnSlices(t *testing.T) {
	testDecisions(t, []decision{
		{row: "K1", is: "a slice that moves to another service leaves the former one at once", test: func(p *play) {
			p.apply(serviceObject("a"), serviceObject("b"), sliceObject("s", "a", "10.0.0.1"))
			p.apply(sliceObject("s", "b", "10.0.0.1"))
			p.is("endpoints of a", p.endpoints("a"))
			p.is("endpoints of b", p.endpoints("b"), "10.0.0.1")
			p.is("reported", p.calls(callEDSUpdate), hostOf("a"), hostOf("b"))
			p.delete("Service", "a")
			p.apply(serviceObject("a"))
			p.is("endpoints of a that was made again", p.endpoints("a"))
		}},
		{row: "K1", is: "a slice without a service label any more leaves its service at once", test: func(p *play) {
			p.apply(serviceObject("a"), sliceObject("s", "a", "10.0.0.1"))
			p.apply(newObject(sliceText("s", "a", "10.0.0.1"), "metadata: {labels: null}"))
			p.is("endpoints", p.endpoints("a"))
			p.is("reported", p.calls(callEDSUpdate), hostOf("a"))
		}},
		{row: "K1", is: "a slice that becomes one of an imported service leaves its service at once", test: func(p *play) {
			p.apply(serviceObject("a"), sliceObject("s", "a", "10.0.0.1"))
			p.apply(newObject(sliceText("s", "a", "10.0.0.1"), "metadata: {labels: {multicluster.kubernetes.io/service-name: a}}"))
			p.is("endpoints", p.endpoints("a"))
		}},
		{row: "K2", is: "a slice without a service label is not reported", test: func(p *play) {
			p.apply(newObject(sliceText("s", "a", "10.0.0.1"), "metadata: {labels: null}"))
			p.is("reported", p.calls(callEDSUpdate))
			p.equal("a service without a name is known", p.known(".ns.svc.cluster.local"), false)
		}},
		{row: "K3", is: "health is that of the slice and the service as they are now", test: func(p *play) {
			going := "{addresses: [10.0.0.1], conditions: {ready: false, serving: true, terminating: true}}"
			p.apply(sliceObject("s", "a", going))
			p.apply(serviceObject("a"))
			p.is("without a session label", p.endpoints("a", "healthStatus"), "10.0.0.1 Terminating")
			p.apply(serviceObject("a", sticky))
			p.is("with a session label", p.endpoints("a", "healthStatus"), "10.0.0.1 Draining")
			p.is("reported", p.calls(callEDSUpdate), hostOf("a"))
			p.apply(serviceObject("a"))
			p.is("without it again", p.endpoints("a", "healthStatus"), "10.0.0.1 Terminating")
		}},
		{row: "K4", is: "conditions that are not set are those of Kubernetes", test: func(p *play) {
			p.apply(serviceObject("a", sticky), sliceObject("s", "a",
				"{addresses: [10.0.0.1], conditions: {}}", "{addresses: [10.0.0.2], conditions: {ready: false}}",
				"{addresses: [10.0.0.3], conditions: {ready: false, serving: true}}",
				"{addresses: [10.0.0.4], conditions: {ready: false, terminating: true}}"))
			p.is("health", p.endpoints("a", "healthStatus"),
				"10.0.0.1 Healthy", "10.0.0.2 UnHealthy", "10.0.0.3 UnHealthy", "10.0.0.4 Terminating")
		}},
		{row: "K5", is: "of slices with one address a healthy endpoint counts first, then the name of the slice", test: testDuplicates},
		{row: "K5", is: "of endpoints with one address in one slice the first counts", test: func(p *play) {
			p.apply(podObject("p1", "10.0.0.1", "spec: {serviceAccountName: first}"), podObject("p2", "10.0.0.1", "spec: {serviceAccountName: second}"))
			p.apply(serviceObject("a"), sliceObject("s", "a", "10.0.0.1 p1", "10.0.0.1 p2"))
			p.is("endpoints", p.endpoints("a", "serviceAccount"), "10.0.0.1 cluster.local/ns/ns/sa/first")
		}},
		{row: "K6", is: "an endpoint waits for its pod by name, ready or not, whatever its address", test: func(p *play) {
			p.apply(serviceObject("a"), sliceObject("s", "a", "fd00::1 p1", "10.0.0.9 p2"))
			p.is("without pods", p.endpoints("a"))
			p.apply(podObject("p1", "10.0.0.1", unready))
			p.is("an unready pod with another address", p.endpoints("a"), "fd00::1")
			p.apply(podObject("p2", "", unready, "status: {podIP: null, podIPs: null}"))
			p.is("a pod without an address", p.endpoints("a"), "10.0.0.9", "fd00::1")
		}},
		{row: "K7", is: "an endpoint goes with its pod", test: func(p *play) {
			p.apply(serviceObject("a"), podObject("p1", "10.0.0.1"), podObject("p2", "10.0.0.2"), podObject("p3", "10.0.0.3"))
			p.apply(sliceObject("s", "a", "10.0.0.1 p1", "10.0.0.2 p2", "10.0.0.3 p3"))
			p.delete("Pod", "p1")
			p.is("a deleted pod", p.endpoints("a"), "10.0.0.2", "10.0.0.3")
			p.apply(podObject("p2", "10.0.0.2", "status: {phase: Failed}"))
			p.is("a failed pod", p.endpoints("a"), "10.0.0.3")
			p.apply(podObject("p1", "10.0.0.7"))
			p.is("a pod of that name again", p.endpoints("a"), "10.0.0.1", "10.0.0.3")
		}},
		{row: "K13", is: "an endpoint without a target follows the pods at its address", test: func(p *play) {
			p.apply(serviceObject("a"), sliceObject("s", "a", "10.0.0.1"))
			p.is("no pod", p.endpoints("a", "serviceAccount", "workloadName"), "10.0.0.1 - -")
			p.apply(podObject("p1", "10.0.0.1"))
			p.is("a pod comes", p.endpoints("a", "serviceAccount", "workloadName"), "10.0.0.1 cluster.local/ns/ns/sa/sa p1")
			p.apply(podObject("p1", "10.0.0.1", "spec: {serviceAccountName: other}"))
			p.is("it changes", p.endpoints("a", "serviceAccount"), "10.0.0.1 cluster.local/ns/ns/sa/other")
			p.apply(podObject("p1", "10.0.0.2"))
			p.is("it has another address", p.endpoints("a", "serviceAccount"), "10.0.0.1 -")
			p.apply(podObject("p1", "10.0.0.1"))
			p.delete("Pod", "p1")
			p.is("it goes", p.endpoints("a", "serviceAccount"), "10.0.0.1 -")
		}},
		{row: "K14", is: "of pods with one address one of the host network counts last, then the older one, then the name", test: testPodsAtOneAddress},
		{row: "K15", is: "an endpoint without a target is matched with any address of a pod", test: func(p *play) {
			p.apply(serviceObject("a"), sliceObject("s", "a", "fd00::1"))
			p.apply(podObject("p1", "10.0.0.1", "status: {podIPs: [{ip: 10.0.0.1}, {ip: 'fd00::1'}]}"))
			p.is("the second address", p.endpoints("a", "workloadName"), "fd00::1 p1")
		}},
		{row: "K54", is: "an endpoint of two addresses stays as long as any slice lists its pod", with: dualStack(), test: func(p *play) {
			p.apply(serviceObject("a", "spec: {clusterIPs: [10.96.0.1, 'fd00:96::1']}"))
			p.apply(podObject("p1", "10.0.0.1", "status: {podIPs: [{ip: 10.0.0.1}, {ip: 'fd00::1'}]}"))
			p.apply(sliceObject("v4", "a", "10.0.0.1 p1"), newObject(sliceText("v6", "a", "fd00::1 p1"), "addressType: IPv6"))
			p.is("both slices", p.endpoints("a"), "10.0.0.1 fd00::1")
			p.delete("EndpointSlice", "v4")
			p.is("one of them", p.endpoints("a"), "10.0.0.1 fd00::1")
			p.delete("EndpointSlice", "v6")
			p.is("none", p.endpoints("a"))
		}},
		{row: "K54", is: "a service that gets its second address later has endpoints with two", with: dualStack(), test: func(p *play) {
			p.apply(serviceObject("a"), sliceObject("v4", "a", "10.0.0.1 p1"))
			p.apply(podObject("p1", "10.0.0.1", "status: {podIPs: [{ip: 10.0.0.1}, {ip: 'fd00::1'}]}"))
			p.is("a service of one address", p.endpoints("a"), "10.0.0.1")
			p.apply(serviceObject("a", "spec: {clusterIPs: [10.96.0.1, 'fd00:96::1']}"))
			p.is("of two", p.endpoints("a"), "10.0.0.1 fd00::1")
			p.apply(serviceObject("a"))
			p.is("of one again", p.endpoints("a"), "10.0.0.1")
		}},
	})
}

// sliceText is a slice, for more to be put over it.
func sliceText(name, service string, endpoints ...string) string {
	text := sliceObject(name, service, endpoints...)
	return text[:len(text)-len("---\n")]
}

func testDuplicates(p *play) {
	objects := []string{
		serviceObject("a"),
		podObject("p1", "10.0.0.1"), podObject("p2", "10.0.0.1"),
		sliceObject("s1", "a", "{addresses: [10.0.0.1], conditions: {ready: false}, targetRef: {kind: Pod, name: p1}}"),
		sliceObject("s2", "a", "10.0.0.1 p2"),
	}
	everyOrder(objects, func(inOrder []string) {
		q := newPlay(p.T, scenarioOpts{}, nil, false)
		q.apply(inOrder...)
		q.is("one is unhealthy", q.endpoints("a", "workloadName", "healthStatus"), "10.0.0.1 p2 Healthy")
		q.apply(sliceObject("s1", "a", "10.0.0.1 p1"))
		q.is("both are healthy", q.endpoints("a", "workloadName", "healthStatus"), "10.0.0.1 p1 Healthy")
		q.delete("EndpointSlice", "s1")
		q.is("the first goes", q.endpoints("a", "workloadName"), "10.0.0.1 p2")
	})
}

func testPodsAtOneAddress(p *play) {
	created := func(second int) string {
		return fmt.Sprintf("metadata: {creationTimestamp: '2024-01-01T00:00:%02dZ'}", second)
	}
	objects := []string{
		podObject("p0", "10.0.0.1", created(1), "spec: {hostNetwork: true}"), podObject("p1", "10.0.0.1", created(3)),
		podObject("p3", "10.0.0.1", created(2)), podObject("p2", "10.0.0.1", created(2)),
	}
	everyOrder(objects, func(inOrder []string) {
		q := newPlay(p.T, scenarioOpts{}, nil, false)
		q.apply(append([]string{serviceObject("a"), sliceObject("s", "a", "10.0.0.1")}, inOrder...)...)
		for _, name := range []string{"p2", "p3", "p1", "p0"} {
			q.is("pods up to "+name, q.endpoints("a", "workloadName"), "10.0.0.1 "+name)
			q.delete("Pod", name)
		}
	})
}
