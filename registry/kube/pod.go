// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unique"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/pilotkit/pilotkit/registry"
)

// pod is what the registry keeps of a Pod. It is immutable. There are very many:
// what is alike in many of them is shared.
type pod struct {
	objectKey
	created int64 // seconds
	// labels are those of the object; the engine shares them between pods.
	labels    registry.Labels
	addresses []string
	account   string
	node      string
	workload  string
	detail    unique.Handle[podDetail]
	flags     podFlags
}

// podDetail is what most pods do not have, or have in common with many.
type podDetail struct {
	hostname, subdomain string
	// ports are the named ones, as "name number protocol" in lines.
	ports string
}

type podFlags uint8

const (
	// usable: the pod is running, or pending, and ready, and is not being deleted,
	// and has an address.
	usable podFlags = 1 << iota
	hostNetwork
)

// canonical returns one copy of equal texts.
func canonical(s string) string { return unique.Make(s).Value() }

// convertPod returns what is kept of a Pod.
func convertPod(p *corev1.Pod) *pod {
	out := &pod{
		objectKey: objectKey{canonical(p.Namespace), p.Name}, created: p.CreationTimestamp.Unix(), labels: p.Labels,
		account: canonical(p.Spec.ServiceAccountName), node: canonical(p.Spec.NodeName), workload: canonical(workloadName(p)),
		addresses: addressesOf(p), detail: detailOf(p),
	}
	if p.Spec.HostNetwork {
		out.flags |= hostNetwork
	}
	if len(out.addresses) > 0 && isUsable(p) {
		out.flags |= usable
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
	if p.DeletionTimestamp != nil || p.Status.Phase != corev1.PodRunning && p.Status.Phase != corev1.PodPending {
		return false
	}
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

func detailOf(p *corev1.Pod) unique.Handle[podDetail] {
	d := podDetail{subdomain: p.Spec.Subdomain}
	if d.subdomain != "" {
		d.hostname = p.Spec.Hostname
		if d.hostname == "" {
			d.hostname = p.Name
		}
	}
	var ports strings.Builder
	add := func(c *corev1.Container) {
		for _, port := range c.Ports {
			if port.Name != "" {
				fmt.Fprintf(&ports, "%s %d %s\n", port.Name, port.ContainerPort, transport(port.Protocol))
			}
		}
	}
	for i := range p.Spec.Containers {
		add(&p.Spec.Containers[i])
	}
	for i := range p.Spec.InitContainers {
		// An init container that is restarted runs beside the others.
		if c := &p.Spec.InitContainers[i]; ptr.Deref(c.RestartPolicy, "") == corev1.ContainerRestartPolicyAlways {
			add(c)
		}
	}
	d.ports = ports.String()
	return unique.Make(d)
}

func (p *pod) usable() bool { return p.flags&usable != 0 }

func (p *pod) hostname() (hostname, subdomain string) {
	d := p.detail.Value()
	return d.hostname, d.subdomain
}

// ports returns the named ports that the containers declare.
func (p *pod) ports() []registry.WorkloadPort {
	var out []registry.WorkloadPort
	for line := range strings.Lines(p.detail.Value().ports) {
		var port registry.WorkloadPort
		if _, err := fmt.Sscan(line, &port.Name, &port.Number, &port.Protocol); err == nil {
			out = append(out, port)
		}
	}
	return out
}

// portMap returns the TCP ports by name, for handlers of workloads; the first of a
// name counts.
func (p *pod) portMap() map[string]uint32 {
	var out map[string]uint32
	for _, port := range p.ports() {
		if port.Protocol != string(corev1.ProtocolTCP) {
			continue
		}
		if out == nil {
			out = map[string]uint32{}
		}
		if _, ok := out[port.Name]; !ok {
			out[port.Name] = port.Number
		}
	}
	return out
}

func samePod(a, b *pod) bool {
	return a.objectKey == b.objectKey && a.created == b.created && a.account == b.account && a.node == b.node &&
		a.workload == b.workload && a.flags == b.flags && slices.Equal(a.addresses, b.addresses) &&
		a.labels.Equal(b.labels) && a.detail == b.detail
}

// cronJob is the name of a job that a CronJob made: its own with the time.
var cronJob = regexp.MustCompile(`^(.+)-\d{8,10}$`)

// workloadName returns the name of what a pod is one of, by Istio's rules: that of
// the controller, and of the controller of that where its name shows it; without a
// controller it is the pod's own.
func workloadName(p *corev1.Pod) string {
	if name := p.Labels[labelWorkloadName]; name != "" {
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
