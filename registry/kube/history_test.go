// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"encoding/json"
	"math/rand/v2"
)

// history makes random steps.
type history struct {
	*rand.Rand
	discovery bool
	// clusters are the names of the clusters; connected reports whether the second one is
	// connected.
	clusters  []string
	connected bool
	// slices are the slices that were last applied in each cluster.
	slices map[string][]object
}

func pick[T any](h *history, all ...T) T { return all[h.IntN(len(all))] }

type object = map[string]any

func (h *history) step() step {
	cluster := pick(h, h.clusters...)
	switch {
	case h.IntN(25) == 0:
		return h.meshStep()
	case cluster != "" && h.IntN(8) == 0:
		return h.lifecycleStep(cluster)
	case h.IntN(8) == 0 && len(h.slices[cluster]) > 0:
		return h.relabelStep(cluster)
	}
	st := h.objectStep(cluster)
	st.Cluster = cluster
	return st
}

// lifecycleStep makes a cluster come, go, or be read by another registry.
func (h *history) lifecycleStep(cluster string) step {
	op := "addCluster"
	if h.connected {
		op = pick(h, "removeCluster", "replaceCluster", "replaceCluster")
	}
	h.connected = op != "removeCluster"
	return step{Lifecycle: &lifecycle{Op: op, Cluster: cluster}}
}

// relabelStep makes a slice that is there one of another service, or of none, and
// leaves it as it is otherwise.
func (h *history) relabelStep(cluster string) step {
	slice := pick(h, h.slices[cluster]...)
	slice["metadata"].(object)["labels"] = pick(h, object{serviceName: "a"}, object{serviceName: "b"}, object{serviceName: "gw"}, object{})
	data, err := json.Marshal(slice)
	if err != nil {
		panic(err)
	}
	text := string(data)
	return step{Apply: &text, Cluster: cluster}
}

const serviceName = "kubernetes.io/service-name"

// proxies returns proxies of pods that may exist, and proxies that describe their own workload.
func (h *history) proxies() []proxySpec {
	return []proxySpec{
		{Pod: "p1", IP: "10.0.0.1", Namespace: "ns1", Cluster: "cluster-1"},
		{Pod: "p2", IP: "10.0.0.2", Namespace: "ns1", Cluster: "cluster-2"},
		{Pod: "p3", IP: "10.0.0.3", IPs: []string{"fd00::1"}, Namespace: "ns2", Cluster: "cluster-2"},
		{Pod: "p1", IP: "10.0.0.2", Namespace: "ns2", Cluster: "cluster-1"},
		{Pod: "p3", IP: "10.0.0.1", Namespace: "ns1"},
		{IP: "10.0.0.1", Namespace: "ns1", Cluster: "cluster-1"},
		{Pod: "none", IP: "10.9.0.9", Namespace: "ns1", Cluster: "cluster-2", Labels: map[string]string{"app": "a"}},
	}
}

func (h *history) objectStep(cluster string) step {
	if h.IntN(6) == 0 {
		ref := objectRef{Kind: pick(h, "Service", "EndpointSlice", "Pod", "Node", "Namespace", "WorkloadEntry", "ServiceEntry")}
		switch o := h.object(ref.Kind); {
		default:
			meta := o["metadata"].(object)
			ref.Name = meta["name"].(string)
			ref.Namespace, _ = meta["namespace"].(string)
		}
		return step{Delete: &ref}
	}
	text := ""
	n := 1
	together := h.IntN(5) == 0
	if together {
		n = 3
	}
	for range n {
		kind := pick(h, "Service", "Service", "EndpointSlice", "EndpointSlice", "EndpointSlice", "Pod", "Pod", "Pod", "Node", "Namespace", "WorkloadEntry", "ServiceEntry")
		made := h.object(kind)
		if kind == "EndpointSlice" {
			h.slices[cluster] = append(h.slices[cluster], made)
		}
		data, err := json.Marshal(made)
		if err != nil {
			panic(err)
		}
		text += string(data) + "\n---\n"
	}
	return step{Apply: &text, Together: together}
}

func (h *history) meshStep() step {
	if h.IntN(2) == 0 {
		text := pick(h, "{}", "networks: {n1: {endpoints: [{fromCidr: 10.0.0.0/8}]}, n2: {endpoints: [{fromCidr: 10.0.0.0/30}]}}",
			"networks: {n3: {endpoints: [{fromRegistry: cluster-1}], gateways: [{registryServiceName: a.ns1.svc.cluster.local, port: 80}]}}",
			"networks: {n4: {endpoints: [{fromCidr: 'fd00::/16'}, {fromRegistry: cluster-2}], gateways: [{registryServiceName: gw.ns1.svc.cluster.local, port: 15443}, {registryServiceName: gw.ns1.svc.cluster.local, port: 80}]}}")
		return step{MeshNetworks: &text}
	}
	selectors := ""
	if h.discovery {
		selectors = pick(h, "", "discoverySelectors: [{matchLabels: {watch: 'yes'}}]\n",
			"discoverySelectors: [{matchExpressions: [{key: watch, operator: DoesNotExist}]}, {matchLabels: {none: a}}]\n")
	}
	text := selectors + pick(h, "", "trustDomain: td2\n")
	return step{MeshConfig: &text, Cluster: pick(h, h.clusters...)}
}

func (h *history) object(kind string) object {
	meta := object{"name": "x", "namespace": pick(h, "ns1", "ns1", "ns2")}
	out := object{"kind": kind, "metadata": meta}
	switch kind {
	case "Service":
		meta["name"] = pick(h, "a", "b", "gw")
		h.service(meta, out)
	case "EndpointSlice":
		meta["name"] = pick(h, "s1", "s2", "s3")
		h.slice(meta, out)
	case "Pod":
		meta["name"] = pick(h, "p1", "p2", "p3")
		h.pod(meta, out)
	case "Node":
		delete(meta, "namespace")
		meta["name"] = pick(h, "n1", "n2")
		meta["labels"] = object{"topology.kubernetes.io/region": pick(h, "r1", "r2"), "gw": pick(h, "yes", "no")}
		if h.IntN(3) == 0 {
			meta["labels"] = object{"failure-domain.beta.kubernetes.io/region": "r3", "failure-domain.beta.kubernetes.io/zone": pick(h, "z1", ""), "topology.istio.io/subzone": pick(h, "s1", "")}
		}
		out["status"] = object{"addresses": pick(h, []any{}, []any{object{"type": "ExternalIP", "address": pick(h, "9.0.0.1", "9.0.0.2")}},
			[]any{object{"type": "InternalIP", "address": "10.9.0.1"}, object{"type": "ExternalIP", "address": "9.0.0.2"}, object{"type": "ExternalIP", "address": "9.0.0.1"}})}
	case "Namespace":
		delete(meta, "namespace")
		meta["name"] = pick(h, "ns1", "ns2", "istio-system")
		meta["labels"] = pick(h, object{}, object{"watch": "yes"}, object{"watch": "yes", "topology.istio.io/network": "sys"})
		meta["annotations"] = pick(h, object{}, object{"networking.istio.io/traffic-distribution": "PreferClose"})
	case "WorkloadEntry":
		meta["name"] = pick(h, "w1", "w2")
		out["apiVersion"] = "networking.istio.io/v1"
		out["spec"] = object{"address": pick(h, "10.0.0.1", "10.9.0.1"), "labels": object{"app": pick(h, "a", "b")}, "ports": pick(h, object{}, object{"http": 1080}, object{"web": 1081})}
		if h.IntN(4) == 0 {
			out["spec"] = object{
				"address": pick(h, "10.0.0.1", "vm.example.com", "fd00::9"), "labels": pick(h, object{}, object{"app": "a", "topology.istio.io/locality": "r.z"}),
				"network": pick(h, "", "own"), "locality": pick(h, "", "r/z"), "serviceAccount": pick(h, "", "sa"), "weight": 3,
			}
		}
	case "ServiceEntry":
		meta["name"] = pick(h, "e1", "e2")
		out["apiVersion"] = "networking.istio.io/v1"
		out["spec"] = object{
			"hosts": []any{pick(h, "x.example.com", "y.example.com")}, "resolution": "STATIC", "location": "MESH_INTERNAL",
			"ports":            []any{object{"name": "http", "number": 80, "protocol": "HTTP"}},
			"workloadSelector": object{"labels": object{"app": pick(h, "a", "b")}},
		}
	}
	return out
}

func (h *history) service(meta, out object) {
	meta["labels"] = pick(h, object{}, object{}, object{"istio.io/persistent-session": "c"}, object{"topology.istio.io/network": "gwnet"},
		object{"topology.istio.io/network": "gwnet", "networking.istio.io/gatewayPort": pick(h, "443", "80", "many")},
		object{"istio.io/persistent-session-header": pick(h, "x", "")})
	meta["annotations"] = pick(h, object{}, object{}, object{}, object{"networking.istio.io/exportTo": pick(h, "~", ".")},
		object{"traffic.istio.io/nodeSelector": pick(h, `{"gw": "yes"}`, "", "nonsense")},
		object{"alpha.istio.io/canonical-serviceaccounts": pick(h, "a", "b, a,", ""), "alpha.istio.io/kubernetes-serviceaccounts": pick(h, "sa1", "sa2,,sa1")},
		object{"networking.istio.io/traffic-distribution": pick(h, "PreferSameNode", "any")})
	spec := object{
		"type": pick(h, "ClusterIP", "ClusterIP", "NodePort", "LoadBalancer"), "selector": pick(h, object{}, object{"app": "a"}, object{"app": "b"}),
		"ports": pick(h, []any{object{"name": "http", "port": 80, "protocol": "TCP", "targetPort": 8080, "nodePort": 30080}},
			[]any{object{"name": "http", "port": 80, "protocol": "TCP", "targetPort": "web"}, object{"name": "tls", "port": 15443, "protocol": "TCP", "targetPort": 15443}},
			[]any{object{"name": "http", "port": 53, "protocol": "UDP", "targetPort": "web"}, object{"name": "dns-tcp", "port": 53, "protocol": "TCP", "targetPort": "web"}},
			[]any{object{"port": 80, "protocol": "TCP"}},
			[]any{
				object{"name": "http", "port": 3306, "appProtocol": pick(h, "kubernetes.io/h2c", "kubernetes.io/wss", "gRPC-web", "mysql-x", "thing"), "targetPort": 8080, "nodePort": 30081},
				object{"name": "GRPC-web-a", "port": 15008, "protocol": "TCP", "targetPort": "none", "nodePort": 30008},
				object{"name": "tls", "port": 443, "protocol": "SCTP", "targetPort": "web", "nodePort": 30443},
			}),
	}
	switch h.IntN(6) {
	case 0:
		spec["clusterIP"] = "None"
	case 1:
		spec["clusterIP"], spec["clusterIPs"] = "10.96.0.1", []any{"10.96.0.1", "fd00:96::1"}
	case 2:
		spec["type"], spec["externalName"] = "ExternalName", pick(h, "ext.example.com", "")
		spec["clusterIP"] = pick(h, "", "None")
	default:
		spec["clusterIP"] = "10.96.0.1"
	}
	spec["externalIPs"] = pick(h, []any{}, []any{}, []any{"9.0.0.1"}, []any{"7.0.0.2", "7.0.0.1"})
	spec["publishNotReadyAddresses"] = h.IntN(6) == 0
	if h.IntN(4) == 0 {
		spec["internalTrafficPolicy"] = pick(h, "Local", "Cluster")
	}
	if h.IntN(4) == 0 {
		spec["trafficDistribution"] = pick(h, "PreferClose", "PreferSameNode", "nonsense")
	}
	out["spec"] = spec
	if spec["type"] == "LoadBalancer" {
		out["status"] = object{"loadBalancer": object{"ingress": pick(h, []any{}, []any{object{"ip": "1.2.3.4"}})}}
	}
}

// owner makes a pod part of a workload, with the labels that determine the workload's name.
func (h *history) owner(meta, labels object) {
	meta["generateName"] = pick(h, "x-", "x-", "x-", "")
	meta["ownerReferences"] = []any{object{
		"kind": pick(h, "ReplicaSet", "ReplicaSet", "ReplicationController", "Job", "Job", "StatefulSet", "Rollout", "Thing"),
		"name": pick(h, "web", "web-abc", "web-5f", "web-12345678", "web-1234567890", "web-1234567", "-12345678", ""), "controller": h.IntN(5) > 0,
	}}
	for range h.IntN(3) {
		label := pick(h, "pod-template-hash", "rollouts-pod-template-hash", "deploymentconfig", "service.istio.io/workload-name")
		labels[label] = pick(h, "abc", "5f", "web", "")
	}
}

func (h *history) slice(meta, out object) {
	meta["labels"] = pick(h, object{"kubernetes.io/service-name": "a"}, object{"kubernetes.io/service-name": "a"}, object{"kubernetes.io/service-name": "b"}, object{},
		object{"kubernetes.io/service-name": "a", "multicluster.kubernetes.io/service-name": pick(h, "a", "")})
	out["addressType"] = pick(h, "IPv4", "IPv4", "IPv4", "FQDN")
	out["ports"] = pick(h, []any{object{"name": "http", "port": 8080}}, []any{object{"name": "http", "port": 8080}, object{"name": "tls", "port": 15443}},
		[]any{object{"port": 8080}, object{"name": "", "port": 9090}, object{"name": "extra", "port": 1}}, []any{})
	endpoints := []any{}
	for range h.IntN(4) {
		e := object{"addresses": []any{pick(h, "10.0.0.1", "10.0.0.2", "10.0.0.3", "fd00::1")}}
		if h.IntN(6) == 0 {
			e["addresses"] = []any{pick(h, "10.0.0.1", "10.0.0.2"), pick(h, "10.0.0.3", "10.0.0.1")}
		}
		e["conditions"] = pick(h, object{"ready": true}, object{"ready": true}, object{}, object{"ready": false, "serving": true, "terminating": true}, object{"ready": false},
			object{"ready": false, "serving": false, "terminating": true}, object{"ready": false, "terminating": true}, object{"serving": true, "terminating": true})
		if h.IntN(3) > 0 {
			e["targetRef"] = object{"kind": pick(h, "Pod", "Pod", "Pod", "Node"), "name": pick(h, "p1", "p2", "p3"), "namespace": pick(h, "ns1", "ns2", "")}
		}
		endpoints = append(endpoints, e)
	}
	out["endpoints"] = endpoints
}

func (h *history) pod(meta, out object) {
	labels := pick(h, object{"app": "a"}, object{"app": "b"}, object{"app": "a", "topology.istio.io/network": "own"}, object{"app": "a", "istio-locality": "r.z"},
		object{"app": "b", "topology.istio.io/locality": "r8.z8.s8", "security.istio.io/tlsMode": pick(h, "istio", "disabled", "")})
	meta["labels"] = labels
	meta["annotations"] = pick(h, object{}, object{"example.com/a": "b"}, object{"ambient.istio.io/redirection": "enabled"})
	if h.IntN(3) == 0 {
		h.owner(meta, labels)
	}
	out["spec"] = object{
		"serviceAccountName": pick(h, "sa1", "sa2"), "nodeName": pick(h, "", "n1", "n2"), "hostNetwork": h.IntN(6) == 0,
		"containers": []any{object{"name": "c", "ports": pick(h, []any{object{"name": "web", "containerPort": 8080, "protocol": "TCP"}},
			[]any{object{"name": "web", "containerPort": 5353, "protocol": "UDP"}, object{"containerPort": 1}, object{"name": "web", "containerPort": 8081}})}},
		"initContainers": pick(h, []any{}, []any{}, []any{
			object{"name": "i", "restartPolicy": "Always", "ports": []any{object{"name": "http", "containerPort": 7777}}},
			object{"name": "j", "ports": []any{object{"name": "tls", "containerPort": 6666}}},
		}),
		"subdomain": pick(h, "", "", "a"), "hostname": pick(h, "", "h"),
	}
	if h.IntN(12) == 0 {
		meta["deletionTimestamp"] = "2024-01-02T00:00:00Z"
	}
	status := object{
		"phase":      pick(h, "Running", "Running", "Running", "Pending", "Unknown", "", "Succeeded", "Failed"),
		"conditions": []any{object{"type": "Ready", "status": pick(h, "True", "True", "False")}},
	}
	if h.IntN(8) > 0 {
		ip := pick(h, "10.0.0.1", "10.0.0.2", "10.0.0.3", "fd00::1")
		status["podIP"] = ip
		status["podIPs"] = pick(h, []any{object{"ip": ip}}, []any{object{"ip": ip}, object{"ip": "fd00::1"}})
	}
	out["status"] = status
}
