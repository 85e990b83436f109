// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/kube"
	"github.com/pilotkit/pilotkit/configstore/kube/gatewayapi"
	"github.com/pilotkit/pilotkit/configstore/kube/gatewayapi/cluster"
)

// settled reports whether no status of a namespace is pending.
func (p *process) settled(tb testing.TB, namespace string) bool {
	tb.Helper()
	for key := range p.cache.Snapshot().Statuses() {
		if key.Namespace != namespace {
			continue
		}
		if _, pending, err := p.cache.PendingStatus(key, time.Now()); pending || err != nil {
			return false
		}
	}
	return true
}

// TestLeadership: one of two processes writes, its successor has nothing to write, entries of other
// controllers stay, and the writer's own writes change no config.
func TestLeadership(t *testing.T) {
	s := newSite(t)
	lease := kube.StatusOptions{Lease: "gateways", LeaseNamespace: s.namespace, LeaseDuration: 3 * time.Second}
	opts := cluster.Options{CacheOptions: gatewayapi.CacheOptions{Infrastructure: &host{answer: ready("10.0.0.1")}}}
	s.apply(class + "---" + edge + "---" + cartService)
	lease.Identity = "first"
	first := s.start(restConfig(s.server.Config()), opts, lease)
	s.synced(first)
	eventually(t, "the first one leads", first.statuses.Leading)
	lease.Identity = "second"
	second := s.start(restConfig(s.server.Config()), opts, lease)
	s.synced(second)
	var changes atomic.Int64
	first.cache.Subscribe([]configstore.GroupVersionKind{istio.VirtualService}, func(batch []configstore.Change) {
		for _, c := range batch {
			if c.Curr.Namespace == s.namespace {
				changes.Inc()
			}
		}
	})
	const routes = 20
	for i := range routes {
		s.apply(fmt.Sprintf(`
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: cart-%d}
spec:
  parentRefs: [{name: edge}]
  hostnames: [cart-%d.example.com]
  rules: [{backendRefs: [{name: cart, port: 8080}]}]
`, i, i))
	}
	eventually(t, "all statuses are written", func() bool {
		return changes.Load() == routes && first.settled(t, s.namespace) && second.settled(t, s.namespace) &&
			first.statuses.Written() >= routes
	})
	if second.statuses.Written() != 0 {
		t.Errorf("written: %d and %d", first.statuses.Written(), second.statuses.Written())
	}
	if n := changes.Load(); n != routes {
		t.Errorf("%d changes of %d VirtualServices", n, routes)
	}

	// Another controller adds its entry, and a foreign write changes ours.
	routesOf := s.client.Resource(schema.GroupVersionResource{Group: "gateway.networking.k8s.io", Version: "v1", Resource: "httproutes"}).Namespace(s.namespace)
	_, err := routesOf.Patch(t.Context(), "cart-0", types.MergePatchType, []byte(`{"status": {"parents": [{
		"parentRef": {"name": "edge"}, "controllerName": "example.com/other",
		"conditions": [{"type": "Accepted", "status": "True", "reason": "Accepted", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]
	}]}}`), metav1.PatchOptions{}, "status")
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "our entry is there again, beside the other one", func() bool {
		parents, _, _ := unstructuredParents(s.get("httproutes", "cart-0").Object)
		return len(parents) == 2 && parents["example.com/other"] && parents[gatewayapi.ControllerName]
	})

	written := first.statuses.Written()
	first.stop()
	eventually(t, "the second one leads", second.statuses.Leading)
	s.apply(`
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: cart-1}
spec:
  parentRefs: [{name: edge}]
  hostnames: [cart-1.example.com]
  rules: [{backendRefs: [{name: gone, port: 8080}]}]
`)
	eventually(t, "the second one writes", func() bool {
		_, reason, _ := condition(s.get("httproutes", "cart-1"), "ResolvedRefs", "status", "parents", "0")
		// A status is visible before its writer has counted it.
		return reason == "BackendNotFound" && second.settled(t, s.namespace) && second.statuses.Written() > 0
	})
	if n := second.statuses.Written(); n != 1 {
		t.Errorf("the second one has written %d statuses, of which one had changed; the first one %d", n, written)
	}
}

// unstructuredParents returns the controllers of a route's status.
func unstructuredParents(o map[string]any) (controllers map[string]bool, count int, ok bool) {
	status, _ := o["status"].(map[string]any)
	list, ok := status["parents"].([]any)
	controllers = map[string]bool{}
	for _, entry := range list {
		parent, _ := entry.(map[string]any)
		name, _ := parent["controllerName"].(string)
		controllers[name] = true
	}
	return controllers, len(list), ok
}
