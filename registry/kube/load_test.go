// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/pilotkit/pilotkit/registry"
)

const loadServices = 20

// load changes the services, slices and pods of a namespace without pause. A change
// that fails because the server is away is made again.
type load struct {
	t         *testing.T
	client    kubernetes.Interface
	namespace string

	mu sync.Mutex
	// made and failed count the changes; changed is closed with each.
	made, failed int
	changed      chan struct{}
}

// startLoad starts a load that ends with the test, or when end is called.
func startLoad(t *testing.T, client kubernetes.Interface, namespace string) (l *load, end func()) {
	t.Helper()
	l = &load{t: t, client: client, namespace: namespace, changed: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	var workers sync.WaitGroup
	for worker := range 4 {
		workers.Go(func() {
			random := rand.New(rand.NewPCG(uint64(worker), 0))
			for ctx.Err() == nil {
				// Each worker has services of its own: their changes do not overtake each other.
				l.change(ctx, random, random.IntN(loadServices/4)*4+worker)
			}
		})
	}
	end = sync.OnceFunc(func() {
		cancel()
		workers.Wait()
	})
	t.Cleanup(end)
	return l, end
}

// change makes one change, as often as it takes.
func (l *load) change(ctx context.Context, random *rand.Rand, service int) {
	name := fmt.Sprintf("load-%d", service)
	var change func() error
	switch pod := fmt.Sprintf("%s-%d", name, random.IntN(3)); random.IntN(8) {
	case 0:
		change = func() error { return l.putService(ctx, name, random.IntN(4)) }
	case 1:
		change = func() error { return l.deletePod(ctx, pod) }
	case 2, 3:
		version := fmt.Sprint(random.IntN(4))
		change = func() error { return l.putPod(ctx, pod, version) }
	default:
		change = func() error { return l.putSlice(ctx, name, random.Perm(6)[:random.IntN(6)]) }
	}
	for again := time.NewTicker(20 * time.Millisecond); ctx.Err() == nil; {
		err := change()
		l.note(err)
		if err == nil {
			again.Stop()
			return
		}
		select {
		case <-again.C:
		case <-ctx.Done():
		}
	}
}

func (l *load) note(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		l.made++
	} else {
		l.failed++
	}
	close(l.changed)
	l.changed = make(chan struct{})
}

// await waits for more changes that were made, or that failed.
func (l *load) await(made, failed int) {
	l.t.Helper()
	deadline := time.After(90 * time.Second)
	l.mu.Lock()
	made, failed = made+l.made, failed+l.failed
	for l.made < made || l.failed < failed {
		changed := l.changed
		l.mu.Unlock()
		select {
		case <-changed:
		case <-deadline:
			l.t.Fatalf("the load made %d changes of %d, and failed %d times of %d", l.made, made, l.failed, failed)
		}
		l.mu.Lock()
	}
	l.mu.Unlock()
}

func (l *load) putService(ctx context.Context, name string, variant int) error {
	services := l.client.CoreV1().Services(l.namespace)
	if variant == 0 {
		return ignoreNotFound(services.Delete(ctx, name, metav1.DeleteOptions{}))
	}
	s := shopService(l.namespace)
	s.Name, s.Spec.Selector = name, map[string]string{"app": name}
	s.Labels = map[string]string{"variant": fmt.Sprint(variant)}
	return upsert(ctx, s, services.Update, services.Create)
}

func (l *load) putPod(ctx context.Context, name, version string) error {
	p := readyPod(l.namespace, name, addressOf(name))
	p.Labels["version"] = version
	pods := l.client.CoreV1().Pods(l.namespace)
	if err := upsert(ctx, p, pods.Update, pods.Create); err != nil {
		return err
	}
	_, err := pods.UpdateStatus(ctx, p, metav1.UpdateOptions{})
	return ignoreNotFound(err)
}

// addressOf returns the address of a pod by its name.
func addressOf(pod string) string {
	var service, n int
	if _, err := fmt.Sscanf(pod, "load-%d-%d", &service, &n); err != nil {
		panic(err)
	}
	return fmt.Sprintf("10.3.%d.%d", service, n+1)
}

func (l *load) deletePod(ctx context.Context, name string) error {
	pods := l.client.CoreV1().Pods(l.namespace)
	return ignoreNotFound(pods.Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}))
}

// putSlice writes a slice with some addresses. The first three addresses belong to named pods.
func (l *load) putSlice(ctx context.Context, service string, addresses []int) error {
	s := shopSlice(l.namespace)
	s.Name, s.Labels = service, map[string]string{discoveryv1.LabelServiceName: service}
	for _, i := range addresses {
		pod := fmt.Sprintf("%s-%d", service, i)
		e := discoveryv1.Endpoint{Addresses: []string{addressOf(pod)}}
		if i < 3 {
			e.TargetRef = &corev1.ObjectReference{Kind: "Pod", Namespace: l.namespace, Name: pod}
		}
		s.Endpoints = append(s.Endpoints, e)
	}
	slicesOf := l.client.DiscoveryV1().EndpointSlices(l.namespace)
	return upsert(ctx, s, slicesOf.Update, slicesOf.Create)
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// ledger follows the events of handlers, and reports impossible ones: an add of an existing object,
// an update or a delete of a missing one.
type ledger struct {
	t  *testing.T
	mu sync.Mutex
	// services and workloads have the last state of each.
	services, workloads map[string]string
}

// follow starts a ledger of the scene's registry.
func (s *scene) follow() *ledger {
	l := &ledger{t: s.T, services: map[string]string{}, workloads: map[string]string{}}
	s.kube.AppendServiceHandler(func(_, curr *registry.Service, e registry.Event) {
		l.note(l.services, "service "+string(curr.Hostname), e, viewService(curr).text())
	})
	s.kube.AppendWorkloadHandler(func(w *registry.WorkloadInstance, e registry.Event) {
		l.note(l.workloads, "workload "+w.Namespace+"/"+w.Name, e, viewWorkload(w).text())
	})
	return l
}

func (l *ledger) note(known map[string]string, key string, e registry.Event, state string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	former, has := known[key]
	switch {
	case has == (e == registry.EventAdd):
		l.t.Errorf("handlers get %s of %s, which they know: %t", e, key, has)
	case e == registry.EventUpdate && former == state:
		l.t.Errorf("handlers get an update of %s that changes nothing: %s", key, state)
	}
	known[key] = state
	if e == registry.EventDelete {
		delete(known, key)
	}
}

func (l *ledger) state() map[string]string {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := maps.Clone(l.services)
	maps.Copy(out, l.workloads)
	return out
}

// shown returns the content and the reports of the registry.
func (s *scene) shown() map[string][]string {
	out := map[string][]string{}
	for _, service := range s.kube.Services() {
		host := string(service.Hostname)
		out[host] = append(out[host], viewService(service).text())
		for _, i := range s.kube.InstancesByPort(service, 0) {
			out[host+" endpoints"] = append(out[host+" endpoints"], viewEndpoint(i.Endpoint).text())
		}
	}
	for e := range s.index.All() {
		key := string(e.Hostname()) + " reported"
		for ep := range e.All() {
			out[key] = append(out[key], viewEndpoint(ep).text())
		}
		slices.Sort(out[key])
	}
	return out
}

// equalsAnew waits until the content and the reports of the registry equal those of a new registry
// that reads the same server.
func (s *scene) equalsAnew(l *ledger, server config) {
	s.Helper()
	fresh := newScene(s.T, restConfig(server.Config()))
	seen := fresh.follow()
	fresh.await("the initial state of another registry", fresh.kube.HasSynced)
	diff := ""
	differs := func() bool {
		diff = cmp.Diff(fresh.shown(), s.shown()) + cmp.Diff(seen.state(), l.state())
		return diff != ""
	}
	deadline := time.After(90 * time.Second)
	for differs() {
		select {
		case <-s.progress:
		case <-time.After(50 * time.Millisecond):
		case <-deadline:
			s.Fatalf("the registry shows (+) something else than one that reads anew (-); errors %v:\n%s", s.kube.Errors(), diff)
		}
	}
	for _, k := range []*scene{s, fresh} {
		if wrong, err := k.kube.Verify(s.Context()); err != nil || len(wrong) > 0 {
			s.Errorf("Verify: %v, %v", wrong, err)
		}
	}
}
