// SPDX-License-Identifier: Apache-2.0

package ingress_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	meshconfig "istio.io/api/mesh/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/kube/ingress"
)

// world is the set of objects of a cluster.
type world struct {
	mesh      ingress.Mesh
	ingresses map[ingress.Key]*networkingv1.Ingress
	classes   map[string]*networkingv1.IngressClass
	services  map[ingress.Key]*corev1.Service
	pods      map[ingress.Key]*corev1.Pod
	nodes     map[string]*corev1.Node
}

func newWorld() *world {
	return &world{
		mesh: ingress.DefaultMesh(), ingresses: map[ingress.Key]*networkingv1.Ingress{},
		classes: map[string]*networkingv1.IngressClass{}, services: map[ingress.Key]*corev1.Service{},
		pods: map[ingress.Key]*corev1.Pod{}, nodes: map[string]*corev1.Node{},
	}
}

func (w *world) setMesh(m ingress.Mesh) ingress.Change {
	w.mesh = m
	return ingress.SetMesh(m)
}

// set adds or replaces an object.
func (w *world) set(object any) ingress.Change {
	switch o := object.(type) {
	case *networkingv1.Ingress:
		w.ingresses[ingress.Key{Namespace: o.Namespace, Name: o.Name}] = o
		return ingress.Set(o)
	case *networkingv1.IngressClass:
		w.classes[o.Name] = o
		return ingress.Set(o)
	case *corev1.Service:
		w.services[ingress.Key{Namespace: o.Namespace, Name: o.Name}] = o
		return ingress.Set(o)
	case *corev1.Pod:
		w.pods[ingress.Key{Namespace: o.Namespace, Name: o.Name}] = o
		return ingress.Set(o)
	case *corev1.Node:
		w.nodes[o.Name] = o
		return ingress.Set(o)
	default:
		panic(fmt.Sprintf("%T", object))
	}
}

// remove removes an object, which may not exist.
func (w *world) remove(kind, namespace, name string) ingress.Change {
	key := ingress.Key{Namespace: namespace, Name: name}
	switch kind {
	case "Ingress":
		delete(w.ingresses, key)
		return ingress.Delete[*networkingv1.Ingress](namespace, name)
	case "IngressClass":
		delete(w.classes, name)
		return ingress.Delete[*networkingv1.IngressClass]("", name)
	case "Service":
		delete(w.services, key)
		return ingress.Delete[*corev1.Service](namespace, name)
	case "Pod":
		delete(w.pods, key)
		return ingress.Delete[*corev1.Pod](namespace, name)
	case "Node":
		delete(w.nodes, name)
		return ingress.Delete[*corev1.Node]("", name)
	default:
		return ingress.Change{}
	}
}

// all returns the changes that add everything to an empty converter.
func (w *world) all() []ingress.Change {
	changes := []ingress.Change{ingress.SetMesh(w.mesh)}
	for _, o := range w.ingresses {
		changes = append(changes, ingress.Set(o))
	}
	for _, o := range w.classes {
		changes = append(changes, ingress.Set(o))
	}
	for _, o := range w.services {
		changes = append(changes, ingress.Set(o))
	}
	for _, o := range w.pods {
		changes = append(changes, ingress.Set(o))
	}
	for _, o := range w.nodes {
		changes = append(changes, ingress.Set(o))
	}
	return changes
}

// fresh returns the result of a new converter for the world.
func (w *world) fresh() *ingress.Snapshot {
	return ingress.NewConverter().Apply(w.all()...).After
}

// state contains all results of a snapshot.
type state struct {
	Configs  []*configstore.Config
	Statuses map[string][]networkingv1.IngressLoadBalancerIngress
	Problems map[string][]ingress.Problem
}

func stateOf(s *ingress.Snapshot) state {
	out := state{
		Configs:  slices.Concat(s.Configs(istio.Gateway), s.Configs(istio.VirtualService)),
		Statuses: map[string][]networkingv1.IngressLoadBalancerIngress{}, Problems: map[string][]ingress.Problem{},
	}
	for key := range s.Ours() {
		status, _ := s.Status(key)
		out.Statuses[key.String()] = status.Ingress
	}
	for _, key := range s.AllProblems() {
		out.Problems[key.String()] = s.Problems(key)
	}
	return out
}

func diff(a, b *ingress.Snapshot) string { return diffStates(stateOf(a), stateOf(b)) }

// diffStates is cmp.Diff, only for states that differ, because cmp.Diff is slow.
func diffStates(a, b state) string {
	if slices.EqualFunc(a.Configs, b.Configs, func(c, d *configstore.Config) bool { return c.Equal(*d) }) {
		a.Configs, b.Configs = nil, nil
	}
	return cmp.Diff(a, b, protocmp.Transform())
}

// checkUpdate compares an update with its snapshots.
func checkUpdate(t *testing.T, u ingress.Update) {
	t.Helper()
	var want []string
	for _, kind := range []configstore.GroupVersionKind{istio.Gateway, istio.VirtualService} {
		for _, c := range u.Before.Configs(kind) {
			if u.After.Get(kind, c.Name, c.Namespace) == nil {
				want = append(want, "delete "+c.Key().String())
			}
		}
		for _, c := range u.After.Configs(kind) {
			if old := u.Before.Get(kind, c.Name, c.Namespace); old == nil {
				want = append(want, "add "+c.Key().String())
			} else if !old.Equal(*c) {
				want = append(want, "update "+c.Key().String())
			}
		}
	}
	var got []string
	for i, c := range u.Changes {
		got = append(got, c.Event.String()+" "+c.Curr.Key().String())
		if i > 0 && u.Changes[i-1].Curr.Key().Compare(c.Curr.Key()) >= 0 {
			t.Errorf("changes are not sorted: %s", got)
		}
		if old := u.Before.Get(c.Curr.GroupVersionKind, c.Curr.Name, c.Curr.Namespace); c.Event == configstore.EventUpdate && c.Old != old {
			t.Errorf("%s has another Old", got[i])
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("changes (-want +got):\n%s", d)
	}
	before, after := stateOf(u.Before), stateOf(u.After)
	changed := map[string]bool{}
	for _, key := range u.Statuses {
		changed[key.String()] = true
	}
	for _, statuses := range []map[string][]networkingv1.IngressLoadBalancerIngress{before.Statuses, after.Statuses} {
		for key := range statuses {
			was, existed := before.Statuses[key]
			is, exists := after.Statuses[key]
			if existed != exists || !cmp.Equal(was, is) {
				if !changed[key] {
					t.Errorf("the status of %s has changed from %v to %v, and is none of %v", key, was, is, u.Statuses)
				}
			} else if changed[key] {
				t.Errorf("the status of %s has not changed, and is one of %v", key, u.Statuses)
			}
		}
	}
	if u.Before == u.After && len(u.Changes)+len(u.Statuses) > 0 {
		t.Error("a snapshot is the former one, and something has changed")
	}
}

// meshOf parses the settings of a mesh config, merged over the defaults.
func meshOf(fields map[string]string) (ingress.Mesh, error) {
	m := ingress.DefaultMesh()
	for name, value := range fields {
		switch name {
		case "ingressControllerMode":
			mode, ok := meshconfig.MeshConfig_IngressControllerMode_value[strings.ToUpper(value)]
			if !ok {
				return m, fmt.Errorf("no mode %q", value)
			}
			m.Mode = meshconfig.MeshConfig_IngressControllerMode(mode)
		case "ingressClass":
			m.Class = value
		case "ingressService":
			m.Service = value
		case "ingressSelector":
			m.Selector = value
		}
	}
	return m, nil
}
