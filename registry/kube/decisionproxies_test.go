// SPDX-License-Identifier: Apache-2.0

package kube_test

import "testing"

func byAddress() scenarioOpts {
	o := scenarioOpts{}
	o.Features.ProxyFindPodByIP = true
	return o
}

const twoPorts = `spec: {ports: [{name: http, port: 80, protocol: TCP, targetPort: 8080}, {name: admin, port: 81, protocol: TCP, targetPort: admin}]}`

// The instances of a proxy, and the labels of its workload.
func TestDecisionsOnProxies(t *testing.T) {
	labelled := func(spec proxySpec) proxySpec {
		spec.Labels = map[string]string{"app": "a"}
		return spec
	}
	testDecisions(t, []decision{
		{row: "K46", is: "of a proxy without a known pod a port that cannot be resolved is left out", test: func(p *play) {
			p.apply(serviceObject("a", twoPorts))
			unknown := labelled(proxySpec{IP: "10.0.0.1", Namespace: "ns"})
			p.is("it declares no ports", p.targets(unknown), "a http 8080")
			unknown.PodPorts = append(unknown.PodPorts, struct {
				Name          string `yaml:"name"`
				ContainerPort uint32 `yaml:"containerPort"`
				Protocol      string `yaml:"protocol"`
			}{"other", 9999, "TCP"})
			p.is("it declares another one", p.targets(unknown), "a http 8080")
			unknown.PodPorts[0].Name = "admin"
			p.is("it declares the port", p.targets(unknown), "a admin 9999", "a http 8080")
		}},
		{row: "K47", is: "a proxy of a service with several slices gets each target once", test: func(p *play) {
			p.apply(serviceObject("a", "spec: {clusterIP: None, selector: null}"), podObject("p1", "10.0.0.1"))
			p.apply(sliceObject("s1", "a", "10.0.0.1"), sliceObject("s2", "a", "10.0.0.1"), sliceObject("s3", "a", "10.0.0.2"))
			p.is("its targets", p.targets(proxySpec{Pod: "p1", IP: "10.0.0.1", Namespace: "ns"}), "a http 8080")
		}},
		{row: "K48", is: "a pod whose name contains a dot is found", test: func(p *play) {
			p.apply(serviceObject("a"), podObject("p.1", "10.0.0.1"))
			p.is("its targets", p.targets(proxySpec{Pod: "p.1", IP: "10.0.0.1", Namespace: "ns"}), "a http 8080")
			p.equal("its labels", p.labelsOf(proxySpec{Pod: "p.1", IP: "10.0.0.1", Namespace: "ns"})["app"], "a")
		}},
		{row: "K49", is: "a proxy is looked up by any of its addresses", with: withEntries(), test: func(p *play) {
			p.apply(serviceObject("a"), workloadEntry("w", "10.9.0.1"))
			p.is("the second address", p.targets(proxySpec{IP: "10.8.0.1", IPs: []string{"10.9.0.1"}, Namespace: "ns"}), "a http 8080")
		}},
		{row: "K49", is: "a WorkloadEntry of another namespace gives a proxy nothing", with: withEntries(), test: func(p *play) {
			p.apply(serviceObject("a"), workloadEntry("w", "10.9.0.1"))
			p.is("another namespace", p.targets(proxySpec{IP: "10.9.0.1", Namespace: "other"}))
			p.is("an unknown one", p.targets(proxySpec{IP: "10.9.0.1"}), "a http 8080")
		}},
		{row: "K50", is: "of pods with the address of a proxy the own namespace counts first, then the name", with: byAddress(), test: func(p *play) {
			objects := []string{
				podObject("p1", "10.0.0.1", "metadata: {namespace: a-first, labels: {who: other}}"),
				podObject("p2", "10.0.0.1", "metadata: {labels: {who: second}}"), podObject("p1", "10.0.0.1", "metadata: {labels: {who: first}}"),
			}
			everyOrder(objects, func(inOrder []string) {
				q := newPlay(p.T, byAddress(), nil, false)
				q.apply(append([]string{serviceObject("a")}, inOrder...)...)
				proxy := proxySpec{IP: "10.0.0.1", Namespace: "ns"}
				for _, who := range []string{"first", "second", "other"} {
					q.equal("labels", q.labelsOf(proxy)["who"], who)
					if who == "other" {
						q.is("targets", q.targets(proxy))
					} else {
						q.is("targets", q.targets(proxy), "a http 8080")
					}
					q.delete("Pod", map[string]string{"first": "p1", "second": "p2", "other": ""}[who])
				}
			})
		}},
		{row: "K52", is: "the label of the node is that of the pod, and without one what the proxy says", test: func(p *play) {
			proxy := proxySpec{Pod: "p1", IP: "10.0.0.1", Namespace: "ns", Node: "said"}
			p.apply(podObject("p1", "10.0.0.1"))
			p.equal("no node", p.labelsOf(proxy)["kubernetes.io/hostname"], "said")
			p.apply(podObject("p1", "10.0.0.1", "spec: {nodeName: n1}"))
			p.equal("a node", p.labelsOf(proxy)["kubernetes.io/hostname"], "n1")
			proxy.Node = ""
			p.equal("a proxy that says nothing", p.labelsOf(proxy)["kubernetes.io/hostname"], "n1")
		}},
	})
}
