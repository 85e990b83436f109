// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"slices"

	"github.com/pilotkit/pilotkit/internal/pmap"
	"github.com/pilotkit/pilotkit/registry"
)

// Verify recomputes the content of the registry from its objects, and returns the differences from
// the published content. Unless there is a bug, there are none. It costs as much as the first sync,
// on the goroutine that handles events. The error is that of ctx, or reports that Run has ended.
// Handlers and the updater must not call it.
func (c *Controller) Verify(ctx context.Context) ([]string, error) {
	var out []string
	err := c.inspect(ctx, func(e *engine) { out = e.differences(e.fromScratch()) })
	return out, err
}

// fromScratch returns an engine that has processed only the current objects.
func (e *engine) fromScratch() *engine {
	o := *e.options
	out := newEngine(&o)
	out.mesh = e.mesh
	for name, s := range e.spaces {
		if s.object != nil {
			out.applyNamespace(name, s.object)
		}
	}
	for name, n := range e.nodes {
		if n.object != nil {
			out.applyNode(name, n.object)
		}
	}
	for _, s := range e.spaces {
		out.copyObjects(s)
	}
	e.pods.Entries(func(p *podEntry) bool {
		out.apply(event{key: p.Key, object: p.Value.podNode.read()})
		return true
	})
	for _, w := range e.workloads {
		out.applyWorkload(w, false)
	}
	out.compute()
	return out
}

// copyObjects applies the objects of a namespace of another engine.
func (e *engine) copyObjects(s *space) {
	for name, h := range s.hosts {
		if h.object != nil {
			e.apply(event{key: objectKey{s.name, name}, object: h.object})
		}
	}
	for name, o := range s.deferredServices {
		e.apply(event{key: objectKey{s.name, name}, object: o})
	}
	for name, n := range s.slices {
		e.apply(event{key: objectKey{s.name, name}, object: n.read(s.name)})
	}
	for name, o := range s.deferredSlices {
		e.apply(event{key: objectKey{s.name, name}, object: o})
	}
	for name, o := range s.deferredPods {
		e.apply(event{key: objectKey{s.name, name}, object: o})
	}
}

// differences returns the differences between an engine and one that was recomputed from scratch.
func (e *engine) differences(right *engine) []string {
	var out []string
	seen := map[registry.Hostname]bool{}
	for _, s := range right.spaces {
		for _, h := range s.hosts {
			seen[h.hostname] = true
			shown, _ := e.hosts.Get(h.hostname)
			out = append(out, compareViews(h.hostname, shown, h.view)...)
		}
	}
	e.hosts.Entries(func(entry *pmap.Entry[registry.Hostname, *hostView]) bool {
		if !seen[entry.Key] {
			out = append(out, fmt.Sprintf("%s is shown and does not exist", entry.Key))
		}
		return true
	})
	right.pods.Entries(func(p *podEntry) bool {
		if shown, ok := e.pods.Get(p.Key); !ok || !shown.attributes.Equal(p.Value.attributes) {
			out = append(out, fmt.Sprintf("pod %s/%s has other attributes", p.Key.namespace, p.Key.name))
		}
		return true
	})
	if !slices.Equal(e.gateways, right.gateways) {
		out = append(out, fmt.Sprintf("network gateways are %v, not %v", e.gateways, right.gateways))
	}
	slices.Sort(out)
	return out
}

func compareViews(host registry.Hostname, shown, right *hostView) []string {
	switch {
	case shown == nil && right == nil:
		return nil
	case shown == nil || right == nil:
		return []string{fmt.Sprintf("%s: shown %t, exists %t", host, shown != nil, right != nil)}
	case !shown.service.Equal(right.service):
		return []string{fmt.Sprintf("%s is another service", host)}
	case !slices.EqualFunc(shown.endpoints.Slice(), right.endpoints.Slice(), (*registry.Endpoint).Equal):
		return []string{fmt.Sprintf("%s has %d endpoints, not these %d", host, shown.endpoints.Len(), right.endpoints.Len())}
	default:
		return nil
	}
}
