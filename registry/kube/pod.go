// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"regexp"
	"slices"
	"strings"
	"unique"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/pilotkit/pilotkit/registry"
)

// pod has the fields of a Pod that the registry reads. It is immutable.
type pod struct {
	objectKey
	podFacts
	node string
}

// podFacts are the fields of a Pod that are kept unchanged. Because there are very many pods, the
// template has the fields that many of them share.
type podFacts struct {
	template  *podTemplate
	addresses []string
	created   int64 // seconds
	flags     podFlags
}

type podFlags uint8

const (
	// usable means that the pod is ready, has not ended, is not being deleted, and has an address.
	// A pod whose phase is unknown or missing has not ended, as for Kubernetes' own endpoints.
	usable podFlags = 1 << iota
	hostNetwork
)

// canonical returns one shared copy of equal texts.
func canonical(s string) string { return unique.Make(s).Value() }

// convertPod returns the fields that are read of a Pod.
func convertPod(p *corev1.Pod) *pod {
	out := &pod{objectKey: objectKey{canonical(p.Namespace), p.Name}, node: canonical(p.Spec.NodeName)}
	out.template, out.addresses, out.created = templateOf(p), addressesOf(p), p.CreationTimestamp.Unix()
	if p.Spec.HostNetwork {
		out.flags |= hostNetwork
	}
	if len(out.addresses) > 0 && isUsable(p) {
		out.flags |= usable
	}
	return out
}

func templateOf(p *corev1.Pod) *podTemplate {
	out := &podTemplate{
		labels: p.Labels, account: p.Spec.ServiceAccountName, workload: workloadName(p), ports: namedPorts(p),
		redirection: p.Annotations[annotationRedirection],
	}
	if out.subdomain = p.Spec.Subdomain; out.subdomain != "" {
		out.hostname = p.Spec.Hostname
	}
	return out
}

// namedPorts returns the named ports of the containers, including init containers with a restart
// policy, because these run as long as the other containers.
func namedPorts(p *corev1.Pod) []registry.WorkloadPort {
	var out []registry.WorkloadPort
	add := func(c *corev1.Container) {
		for _, port := range c.Ports {
			if port.Name != "" {
				out = append(out, registry.WorkloadPort{
					Name: port.Name, Number: uint32(port.ContainerPort), Protocol: transport(port.Protocol),
				})
			}
		}
	}
	for i := range p.Spec.Containers {
		add(&p.Spec.Containers[i])
	}
	for i := range p.Spec.InitContainers {
		if c := &p.Spec.InitContainers[i]; ptr.Deref(c.RestartPolicy, "") == corev1.ContainerRestartPolicyAlways {
			add(c)
		}
	}
	return out
}

// addressesOf returns the addresses of a pod, the primary one first.
func addressesOf(p *corev1.Pod) []string {
	if p.Status.PodIP == "" {
		return nil
	}
	out := make([]string, 1, max(1, len(p.Status.PodIPs)))
	out[0] = p.Status.PodIP
	for _, ip := range p.Status.PodIPs {
		if !slices.Contains(out, ip.IP) {
			out = append(out, ip.IP)
		}
	}
	return out
}

func isUsable(p *corev1.Pod) bool {
	if p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
		return false
	}
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

func (p *podFacts) usable() bool { return p.flags&usable != 0 }

func samePod(a, b *pod) bool {
	return a.objectKey == b.objectKey && a.created == b.created && a.node == b.node && a.flags == b.flags &&
		slices.Equal(a.addresses, b.addresses) && sameTemplate(a.template, b.template)
}

// cronJob matches the name of a job that a CronJob created: the CronJob's name with a time.
var cronJob = regexp.MustCompile(`^(.+)-\d{8,10}$`)

// workloadName returns the name of a pod's workload by Istio's rules: the name of the pod's
// controller, or of the controller's own controller if the name implies one. Without a controller
// it is the pod's own name.
func workloadName(p *corev1.Pod) string {
	if name, ok := p.Labels[labelWorkloadName]; ok {
		return name
	}
	i := slices.IndexFunc(p.OwnerReferences, func(o metav1.OwnerReference) bool { return ptr.Deref(o.Controller, false) })
	if p.GenerateName == "" || i < 0 {
		return p.Name
	}
	owner := p.OwnerReferences[i]
	switch owner.Kind {
	case "ReplicaSet":
		for _, key := range []string{labelTemplateHash, labelRolloutHash} {
			if hash := p.Labels[key]; hash != "" && strings.HasSuffix(owner.Name, hash) {
				return strings.TrimSuffix(owner.Name, "-"+hash)
			}
		}
	case "ReplicationController":
		if name := p.Labels[labelDeployment]; name != "" {
			return name
		}
	case "Job":
		if m := cronJob.FindStringSubmatch(owner.Name); m != nil {
			return m[1]
		}
	}
	if owner.Name == "" {
		return p.Name
	}
	return owner.Name
}
