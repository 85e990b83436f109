// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func (w *world) locality(p *corev1.Pod) string {
	for _, key := range []string{"topology.istio.io/locality", "istio-locality"} {
		if v, ok := p.Labels[key]; ok {
			if !strings.Contains(v, "/") {
				v = strings.ReplaceAll(v, ".", "/")
			}
			if v != "" {
				return v
			}
			break
		}
	}
	n := w.nodes[p.Spec.NodeName]
	if n == nil {
		return ""
	}
	parts := []string{
		firstLabel(n.Labels, "topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region"),
		firstLabel(n.Labels, "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"),
		n.Labels["topology.istio.io/subzone"],
	}
	if out := strings.Join(parts, "/"); out != "//" {
		return out
	}
	return ""
}

func firstLabel(all map[string]string, keys ...string) string {
	for _, k := range keys {
		if all[k] != "" {
			return all[k]
		}
	}
	return ""
}

func (w *world) workloadLabels(own map[string]string, locality, node, network string) map[string]string {
	out := map[string]string{"topology.istio.io/cluster": w.cluster, "topology.istio.io/network": network, "kubernetes.io/hostname": node}
	parts := append(strings.Split(locality, "/"), "", "", "")
	out["topology.kubernetes.io/region"], out["topology.kubernetes.io/zone"], out["topology.istio.io/subzone"] = parts[0], parts[1], parts[2]
	for k, v := range own {
		if out[k] == "" {
			out[k] = v
		}
	}
	return out
}

func podAddresses(p *corev1.Pod) []string {
	if p.Status.PodIP == "" {
		return nil
	}
	out := []string{p.Status.PodIP}
	for _, ip := range p.Status.PodIPs {
		if !slices.Contains(out, ip.IP) {
			out = append(out, ip.IP)
		}
	}
	return out
}

func isUsable(p *corev1.Pod) bool {
	isReady := false
	for _, c := range p.Status.Conditions {
		isReady = isReady || c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	}
	over := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	return isReady && !over && p.DeletionTimestamp == nil && p.Status.PodIP != ""
}

// attributes returns the fields of a pod in a record, nil for a nil pod.
func (w *world) attributes(p *corev1.Pod, address string) map[string]any {
	if p == nil {
		network := w.network(nil, address)
		return map[string]any{
			"labels": w.workloadLabels(nil, "", "", network), "network": network, "clusterID": w.cluster, "tlsMode": "disabled",
			"sendUnhealthyEndpoints": true,
		}
	}
	network, locality := w.network(p.Labels, p.Status.PodIP, address), w.locality(p)
	hostname := ""
	if p.Spec.Subdomain != "" {
		if hostname = p.Spec.Hostname; hostname == "" {
			hostname = p.Name
		}
	}
	tls, ok := p.Labels["security.istio.io/tlsMode"]
	if !ok {
		tls = "disabled"
	}
	return map[string]any{
		"labels":         w.workloadLabels(p.Labels, locality, p.Spec.NodeName, network),
		"serviceAccount": "spiffe://" + w.mesh.TrustDomain + "/ns/" + p.Namespace + "/sa/" + p.Spec.ServiceAccountName,
		"network":        network, "locality": locality, "clusterID": w.cluster, "tlsMode": tls, "namespace": p.Namespace,
		"workloadName": workload(p), "nodeName": p.Spec.NodeName, "hostName": hostname, "subDomain": p.Spec.Subdomain,
		"sendUnhealthyEndpoints": true,
	}
}

// workload returns the name of the workload of a pod.
func workload(p *corev1.Pod) string {
	if name, ok := p.Labels["service.istio.io/workload-name"]; ok {
		return name
	}
	var controllers []metav1.OwnerReference
	for _, o := range p.OwnerReferences {
		if o.Controller != nil && *o.Controller {
			controllers = append(controllers, o)
		}
	}
	if len(controllers) == 0 || p.GenerateName == "" || controllers[0].Name == "" {
		return p.Name
	}
	owner := controllers[0].Name
	withoutHash := func(label string) string {
		if hash := p.Labels[label]; hash != "" {
			if name, ok := strings.CutSuffix(owner, "-"+hash); ok {
				return name
			}
		}
		return ""
	}
	name := ""
	switch controllers[0].Kind {
	case "ReplicaSet":
		if name = withoutHash("pod-template-hash"); name == "" {
			name = withoutHash("rollouts-pod-template-hash")
		}
	case "ReplicationController":
		name = p.Labels["deploymentconfig"]
	case "Job":
		name = scheduled(owner)
	}
	if name == "" {
		return owner
	}
	return name
}

// scheduled returns the name of the CronJob of a job, which precedes the time of 8 to 10 digits at
// the end; "" if there is none.
func scheduled(job string) string {
	i := strings.LastIndex(job, "-")
	if i <= 0 {
		return ""
	}
	digits := job[i+1:]
	if len(digits) < 8 || len(digits) > 10 || strings.Trim(digits, "0123456789") != "" {
		return ""
	}
	return job[:i]
}

func preferred(p, q *corev1.Pod) bool {
	switch {
	case p.Spec.HostNetwork != q.Spec.HostNetwork:
		return q.Spec.HostNetwork
	case !p.CreationTimestamp.Equal(&q.CreationTimestamp):
		return p.CreationTimestamp.Before(&q.CreationTimestamp)
	default:
		return p.Name < q.Name
	}
}

// workloads returns what workload handlers know of the pods, by namespace/name.
func (w *world) workloads() map[string]record {
	out := map[string]record{}
	for k, p := range w.pods {
		if !isUsable(p) {
			continue
		}
		ep := w.attributes(p, "")
		addresses := podAddresses(p)
		if !w.dualStack {
			addresses = addresses[:1]
		}
		ep["addresses"], ep["healthStatus"] = addresses, "Healthy"
		ports := map[string]int32{}
		add := func(c corev1.Container) {
			for _, port := range c.Ports {
				if _, ok := ports[port.Name]; !ok && port.Name != "" && transport(port.Protocol) == "TCP" {
					ports[port.Name] = port.ContainerPort
				}
			}
		}
		for _, c := range p.Spec.Containers {
			add(c)
		}
		for _, c := range p.Spec.InitContainers {
			if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
				add(c)
			}
		}
		out[k] = plain(map[string]any{"portMap": ports, "endpoint": ep}).(map[string]any)
	}
	return out
}
