// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"slices"

	"github.com/pilotkit/pilotkit/registry"
)

var _ registry.PodExplainer = (*Controller)(nil)

// Explain implements registry.PodExplainer.
func (c *Controller) Explain(ctx context.Context, hostname registry.Hostname, namespace, pod string) (registry.PodExplanation, error) {
	var out registry.PodExplanation
	err := c.inspect(ctx, func(e *engine) { out = registry.PodExplanation(e.explain(hostname, objectKey{namespace, pod})) })
	return out, err
}

// inspect calls look on the goroutine that handles events, after all events queued earlier have
// been handled.
func (c *Controller) inspect(ctx context.Context, look func(*engine)) error {
	c.publisher.Enqueue(event{inspect: look})
	return c.Flush(ctx)
}

func (e *engine) explain(hostname registry.Hostname, k objectKey) explanation {
	h := e.hostOf(hostname)
	switch {
	case h == nil || h.object == nil:
		return refusal("there is no service %s%s", hostname, e.unwatched(hostname))
	case h.object.hidden():
		return refusal("%s is exported to nobody", hostname)
	}
	pod := e.pods.Entry(k)
	var out explanation
	listed := e.explainSlices(h, k, &out)
	switch {
	case pod == nil && e.spaces[k.namespace] != nil && !e.spaces[k.namespace].selected:
		out.add("the namespace %s is not watched", k.namespace)
	case pod == nil:
		out.add("there is no pod %s/%s, or it has failed", k.namespace, k.name)
	case !listed:
		e.explainUnlisted(h, pod, &out)
	}
	return out
}

// explanation is an explanation under construction.
type explanation registry.PodExplanation

func refusal(format string, args ...any) explanation {
	return explanation{Reasons: []string{fmt.Sprintf(format, args...)}}
}

func (x *explanation) add(format string, args ...any) {
	x.Reasons = append(x.Reasons, fmt.Sprintf(format, args...))
}

// hostOf returns the host of a host name, or nil.
func (e *engine) hostOf(hostname registry.Hostname) *host {
	for _, s := range e.spaces {
		for _, h := range s.hosts {
			if h.hostname == hostname {
				return h
			}
		}
	}
	return nil
}

// unwatched explains that a service exists in a namespace that is not watched.
func (e *engine) unwatched(hostname registry.Hostname) string {
	for _, s := range e.spaces {
		for name := range s.deferredServices {
			if e.hostnameOf(objectKey{s.name, name}) == hostname {
				return ": its namespace is not watched"
			}
		}
	}
	return ""
}

// explainSlices looks for a pod in the slices of a service, and reports whether a slice lists it.
func (e *engine) explainSlices(h *host, k objectKey, out *explanation) bool {
	listed := false
	for _, n := range h.slices {
		for i := range n.endpoints {
			l, pod := &n.endpoints[i], e.podOf(n, i)
			if !l.names(k) && (l.target != nil || pod == nil || pod.Key != k) {
				continue
			}
			listed = true
			e.explainEndpoint(h, n, i, out)
		}
	}
	return listed
}

func (e *engine) explainEndpoint(h *host, n *sliceNode, i int, out *explanation) {
	if len(n.ports) == 0 {
		out.add("the slice %s lists it, and has no ports", n.name)
	}
	from, to := n.of(i)
	for _, ep := range n.built[from:to] {
		if ep == nil {
			continue
		}
		winner := e.elect(h, keyOf(ep))
		if !sameEndpoint(winner.endpoint(), ep) {
			out.add("for port %q the endpoint of the slice %s with the same address counts instead of that in %s",
				ep.ServicePortName, winner.slice.name, n.name)
			continue
		}
		if !slices.Contains(out.Endpoints, winner.endpoint()) {
			out.Endpoints = append(out.Endpoints, winner.endpoint())
		}
		if ep.HealthStatus != registry.Healthy {
			out.add("the slice %s says that it is not ready: it is %s", n.name, ep.HealthStatus)
		}
		if h.view.service.PortByName(ep.ServicePortName) == nil {
			out.add("the service has no port %q, which the slice %s has", ep.ServicePortName, n.name)
		}
	}
}

// explainUnlisted explains why the EndpointSlice controller may have left out a pod.
func (e *engine) explainUnlisted(h *host, p *podEntry, out *explanation) {
	out.add("none of the %d slices of the service lists it", len(h.slices))
	switch {
	case len(h.object.selector) == 0:
		out.add("the service has no selector")
	case p.Key.namespace != h.namespace:
		out.add("the service selects pods of its own namespace %s", h.namespace)
	case !h.object.selector.SubsetOf(p.Value.template.labels):
		out.add("the selector %s does not match the pod's labels %s", h.object.selector, p.Value.template.labels)
	case !p.Value.usable():
		out.add("the pod is not ready, is being deleted, or has no address")
	default:
		out.add("the service selects it: the slice is late, or is of another service or kind")
	}
}
