// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/kube"
	"github.com/pilotkit/pilotkit/configstore/kube/gatewayapi"
	"github.com/pilotkit/pilotkit/configstore/kube/gatewayapi/cluster"
	"github.com/pilotkit/pilotkit/internal/test/authority"
	"github.com/pilotkit/pilotkit/internal/test/tier"
)

// history makes random changes of the objects of a namespace, which two replicas convert to configs
// and statuses.
type history struct {
	*site
	random      *rand.Rand
	certificate string // the data of a Secret
	opts        cluster.Options
	lease       kube.StatusOptions
	replicas    [2]*process
	written     [2]uint64 // by replicas that did not lead
	// foreign are the routes with an entry of another controller.
	foreign map[string]bool
}

// TestHistories: after random histories at an API server, with restarts and changes of the leader,
// the configs and statuses equal those of a fresh start, which would write nothing. Only the leader
// has written, and the entries of another controller are still present.
func TestHistories(t *testing.T) {
	steps, interval := tier.Share(300), 50
	s := newSite(t)
	certificate, key := authority.New(t).Issue("a.example.com")
	h := &history{
		site: s, random: rand.New(rand.NewPCG(25, 25)), foreign: map[string]bool{},
		certificate: fmt.Sprintf("{tls.crt: %s, tls.key: %s}", base64.StdEncoding.EncodeToString(certificate), base64.StdEncoding.EncodeToString(key)),
		opts:        cluster.Options{CacheOptions: gatewayapi.CacheOptions{Infrastructure: &host{answer: ready("10.0.0.1")}}},
		lease:       kube.StatusOptions{Lease: "gateways", LeaseNamespace: s.namespace, LeaseDuration: 3 * time.Second, Rate: 1000},
	}
	s.apply(class)
	h.startReplica(0)
	h.startReplica(1)
	for i := range steps {
		h.step()
		if i%interval == interval-1 {
			h.check(fmt.Sprintf("after %d steps", i+1))
			h.restart()
		}
	}
	h.check("in the end")
}

func (h *history) startReplica(i int) {
	h.lease.Identity = fmt.Sprintf("replica-%d-%d", i, h.random.Uint32())
	h.replicas[i] = h.start(restConfig(h.server.Config()), h.opts, h.lease)
	h.written[i] = 0
}

// restart ends one of the replicas, the leader or the other one, and starts it again.
func (h *history) restart() {
	i := h.random.IntN(2)
	h.replicas[i].stop()
	h.startReplica(i)
}

// step creates, changes or deletes an object, or adds a foreign entry to the status of a route.
func (h *history) step() {
	h.Helper()
	n := h.random.IntN
	name := func(of string, count int) string { return fmt.Sprint(of, n(count)) }
	object := map[int]func() string{
		0: func() string { return h.gateway(name("g", 3)) },
		1: func() string { return h.listenerSet(name("l", 2)) },
		2: func() string {
			return fmt.Sprintf("apiVersion: v1\nkind: Service\nmetadata: {name: %s}\nspec: {ports: [{name: http, port: %d}]}\n", name("s", 4), 80+n(2))
		},
		3: func() string {
			return fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: %s}\ntype: kubernetes.io/tls\ndata: %s\n", name("c", 2), h.certificate)
		},
		4: func() string {
			return fmt.Sprintf("apiVersion: gateway.networking.k8s.io/v1\nkind: BackendTLSPolicy\nmetadata: {name: %s}\n"+
				"spec: {targetRefs: [{group: '', kind: Service, name: %s}], validation: {hostname: a.example.com, wellKnownCACertificates: System}}\n",
				name("p", 2), name("s", 4))
		},
	}[n(9)]
	switch {
	case object == nil && n(6) == 0:
		h.addForeign(name("r", 12))
	case object == nil:
		h.changeRoute(name("r", 12))
	case n(4) == 0:
		h.remove(object())
	default:
		h.apply(object())
	}
}

func (h *history) changeRoute(name string) {
	h.Helper()
	if h.random.IntN(5) == 0 {
		h.remove(h.route(name))
		delete(h.foreign, name)
		return
	}
	h.apply(h.route(name))
}

func (h *history) gateway(name string) string {
	n := h.random.IntN
	listeners := []string{fmt.Sprintf("{name: web, port: %d, protocol: HTTP%s}", 80+n(2), h.oneOf("", ", hostname: '*.example.com'", ", hostname: a.example.com"))}
	if n(2) == 0 {
		listeners = append(listeners, fmt.Sprintf("{name: tls, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: c%d}]}}", n(3)))
	}
	return fmt.Sprintf("apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {name: %s}\n"+
		"spec: {gatewayClassName: %s, allowedListeners: {namespaces: {from: %s}}, listeners: [%s]}\n",
		name, h.oneOf("edge", "edge", "edge", "other"), h.oneOf("Same", "Same", "None"), strings.Join(listeners, ", "))
}

func (h *history) listenerSet(name string) string {
	return fmt.Sprintf("apiVersion: gateway.networking.k8s.io/v1\nkind: ListenerSet\nmetadata: {name: %s}\n"+
		"spec: {parentRef: {name: g%d}, listeners: [{name: more, port: %d, protocol: HTTP}]}\n", name, h.random.IntN(3), 80+h.random.IntN(3))
}

func (h *history) route(name string) string {
	n := h.random.IntN
	parents := []string{h.parent()}
	if other := h.parent(); n(2) == 0 && other[:len("{name: g0")] != parents[0][:len("{name: g0")] {
		parents = append(parents, other)
	}
	return fmt.Sprintf("apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: %s}\nspec:\n  parentRefs: [%s]\n  hostnames: [%s]\n"+
		"  rules: [{backendRefs: [{name: s%d, port: %d}]}, {backendRefs: [{name: s%d, port: 80, weight: %d}]}]\n",
		name, strings.Join(parents, ", "), h.oneOf("a.example.com", "b.example.com", "c.example.com", "d.example.org"),
		n(4), 80+n(2), n(5), n(3))
}

func (h *history) parent() string {
	return h.oneOf("{name: g0}", "{name: g1}", "{name: g2}", "{name: g0, sectionName: tls}", "{name: g1, sectionName: gone}",
		"{name: l0, kind: ListenerSet, group: gateway.networking.k8s.io}")
}

func (h *history) oneOf(texts ...string) string { return texts[h.random.IntN(len(texts))] }

// addForeign adds an entry of another controller to the status of a route, if the route exists.
func (h *history) addForeign(name string) {
	h.Helper()
	routes := h.resource(h.objects(h.route(name))[0])
	for {
		o, err := routes.Get(h.Context(), name, metav1.GetOptions{})
		if err != nil || h.foreign[name] {
			return // There is none, or it has the entry.
		}
		_, err = routes.Patch(h.Context(), name, types.JSONPatchType, []byte(h.foreignPatch(o.GetResourceVersion(), o.Object)), metav1.PatchOptions{}, "status")
		if err == nil {
			h.foreign[name] = true
			return
		}
	}
}

// foreignPatch adds the entry, if the route has not changed.
func (h *history) foreignPatch(version string, route map[string]any) string {
	const entry = `{"parentRef": {"name": "theirs"}, "controllerName": "example.com/other", "conditions": [
		{"type": "Accepted", "status": "True", "reason": "Accepted", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}`
	add := `{"op": "add", "path": "/status/parents/-", "value": ` + entry + `}`
	if _, _, has := unstructuredParents(route); !has {
		add = `{"op": "add", "path": "/status", "value": {"parents": [` + entry + `]}}`
	}
	return `[{"op": "test", "path": "/metadata/resourceVersion", "value": "` + version + `"}, ` + add + `]`
}

// check compares both replicas, and the statuses at the server, with a fresh start.
func (h *history) check(when string) {
	h.Helper()
	fresh := h.follow(restConfig(h.server.Config()), h.opts)
	defer fresh.stop()
	h.synced(fresh)
	for i, p := range append(h.replicas[:], fresh) {
		eventually(h, fmt.Sprintf("%s: process %d has the configs of a fresh start", when, i), func() bool {
			return cmp.Equal(h.configs(fresh.cache), h.configs(p.cache))
		})
		eventually(h, fmt.Sprintf("%s: process %d finds all statuses right", when, i), func() bool { return p.settled(h, h.namespace) })
	}
	for i, replica := range h.replicas {
		if leads, n := replica.statuses.Leading(), replica.statuses.Written(); !leads {
			if n != h.written[i] {
				h.Errorf("%s: replica %d has written %d statuses, and leads no more than before", when, i, n-h.written[i])
			}
		}
		h.written[i] = replica.statuses.Written()
	}
	for name := range h.foreign {
		if controllers, _, _ := unstructuredParents(h.get("httproutes", name).Object); !controllers["example.com/other"] {
			h.Errorf("%s: route %s has lost the entry of another controller", when, name)
		}
	}
}

// configs returns a cache's configs in the namespace, as texts by key.
func (h *history) configs(of *cluster.Cache) map[string]string {
	out := map[string]string{}
	for _, kind := range []configstore.GroupVersionKind{istio.Gateway, istio.VirtualService, istio.DestinationRule} {
		for _, c := range of.List(kind, h.namespace) {
			out[c.Key().String()] = fmt.Sprint(c.Labels, c.Annotations, c.CreationTimestamp, c.Spec)
		}
	}
	return out
}
