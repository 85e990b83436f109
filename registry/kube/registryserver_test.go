// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"

	"github.com/pilotkit/pilotkit/internal/test/tier"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/kube"
	"github.com/pilotkit/pilotkit/registry/registrytest"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// suiteSpaces are the namespaces of the suite, and one for the mark. They have a label that other
// tests do not use, and the registry discovers them by it.
func suiteSpaces() []string {
	return []string{"retail", "money", "churn", "one", "two", "abroad", "market", "zoo", markSpace}
}

const markSpace = "mark"

// TestInstanceOnServer runs the conformance suite on a registry that reads a real API server. The
// suite writes its services to that server.
func TestInstanceOnServer(t *testing.T) {
	tier.OnlyFull(t, "the promises of registries, over an API server")
	server := apiserver.Server(t)
	client, err := kubernetes.NewForConfig(restConfig(server.Config()))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range suiteSpaces() {
		_, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"suite": "yes"}},
		}, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	registrytest.TestInstance(t, func(tb testing.TB) registrytest.Subject {
		tb.Helper()
		return newServerSubject(tb, client)
	})
}

// newServerSubject returns a running registry. The server has no objects for it.
func newServerSubject(tb testing.TB, client kubernetes.Interface) registrytest.Subject {
	tb.Helper()
	progress := make(chan struct{}, 1)
	k := kube.New(client, progressing{&recorder{index: xdsupdate.NewEndpointIndex()}, progress}, kube.Options{
		ClusterID: "east",
		Mesh:      kube.Mesh{DiscoverySelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{"suite": "yes"}}}},
	})
	stop := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() { k.Run(stop) })
	ctx, cancel := context.WithCancel(context.Background())
	w := &serverWriter{tb: tb, ctx: ctx, client: client, kube: k, progress: progress, pods: map[string]bool{}}
	tb.Cleanup(func() {
		w.clear()
		cancel()
		close(stop)
		running.Wait()
	})
	subject := newRenamed(k, w).subject()
	subject.Running, subject.Timeout = true, time.Minute
	return subject
}

// serverWriter writes to an API server.
type serverWriter struct {
	tb       testing.TB
	ctx      context.Context //nolint:containedctx // that of the test, for what the suite calls
	client   kubernetes.Interface
	kube     *kube.Controller
	progress chan struct{}

	mu sync.Mutex
	// pods are the existing pods, which never change.
	pods map[string]bool
	// writes is the number of changes that the server has accepted, mark the number that catchUp
	// has awaited.
	writes, mark int
}

// check reports an error, unless the test is over.
func (w *serverWriter) check(err error) {
	if err != nil && w.ctx.Err() == nil {
		w.tb.Error(err)
	}
}

// each calls do for all objects at once.
func (w *serverWriter) each(objects []runtime.Object, do func(runtime.Object) error) {
	var group sync.WaitGroup
	for _, o := range objects {
		group.Go(func() { w.check(do(o)) })
	}
	group.Wait()
	// Only now: of a change that is being written when catchUp begins, the registry
	// may not have seen anything when it shows the mark.
	w.mu.Lock()
	w.writes++
	w.mu.Unlock()
}

func (w *serverWriter) put(objects ...runtime.Object)    { w.each(objects, w.putOne) }
func (w *serverWriter) remove(objects ...runtime.Object) { w.each(objects, w.removeOne) }

func (w *serverWriter) putOne(object runtime.Object) error {
	switch o := object.(type) {
	case *corev1.Service:
		services := w.client.CoreV1().Services(o.Namespace)
		return upsert(w.ctx, o, services.Update, services.Create)
	case *discoveryv1.EndpointSlice:
		endpointSlices := w.client.DiscoveryV1().EndpointSlices(o.Namespace)
		return upsert(w.ctx, o, endpointSlices.Update, endpointSlices.Create)
	default:
		return w.putPod(object.(*corev1.Pod))
	}
}

// upsert replaces an object, or makes it.
func upsert[T any](
	ctx context.Context, o T, update func(context.Context, T, metav1.UpdateOptions) (T, error),
	create func(context.Context, T, metav1.CreateOptions) (T, error),
) error {
	for {
		if _, err := update(ctx, o, metav1.UpdateOptions{}); !apierrors.IsNotFound(err) {
			return err
		}
		if _, err := create(ctx, o, metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
}

// putPod writes a pod with its status. One without labels, which is the target of
// endpoints, is written once.
func (w *serverWriter) putPod(p *corev1.Pod) error {
	k := p.Namespace + "/" + p.Name
	w.mu.Lock()
	known := w.pods[k]
	w.pods[k] = len(p.Labels) == 0
	w.mu.Unlock()
	if known {
		return nil
	}
	pods := w.client.CoreV1().Pods(p.Namespace)
	if err := upsert(w.ctx, p, pods.Update, pods.Create); err != nil {
		return err
	}
	_, err := pods.UpdateStatus(w.ctx, p, metav1.UpdateOptions{})
	return err
}

func (w *serverWriter) removeOne(object runtime.Object) error {
	switch o := object.(type) {
	case *corev1.Service:
		return w.client.CoreV1().Services(o.Namespace).Delete(w.ctx, o.Name, metav1.DeleteOptions{})
	case *discoveryv1.EndpointSlice:
		return w.client.DiscoveryV1().EndpointSlices(o.Namespace).Delete(w.ctx, o.Name, metav1.DeleteOptions{})
	case *corev1.Pod:
		return w.client.CoreV1().Pods(o.Namespace).Delete(w.ctx, o.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
	}
	return nil
}

// catchUp writes a mark of each kind and waits until the registry shows all three. Earlier writes
// of a kind are visible before the mark of the kind.
func (w *serverWriter) catchUp() {
	for {
		w.mu.Lock()
		before := w.writes
		w.mark++
		mark := w.mark
		w.mu.Unlock()
		w.writeMark(mark)
		w.awaitMark(mark)
		if err := w.kube.Flush(w.ctx); err != nil {
			w.check(err)
			return
		}
		w.mu.Lock()
		done := w.writes == before // else a handler has written meanwhile
		w.mu.Unlock()
		if done {
			return
		}
	}
}

func (w *serverWriter) writeMark(mark int) {
	service := shopService(markSpace)
	service.Spec.Ports[0].Port = int32(mark)
	pod := shopPod(markSpace, "p1")
	pod.Labels = map[string]string{"mark": strconv.Itoa(mark)}
	slice := shopSlice(markSpace, "10.1.0.1")
	number := int32(mark)
	slice.Ports[0].Port = &number
	pods := w.client.CoreV1().Pods(markSpace)
	var group sync.WaitGroup
	group.Go(func() { w.check(w.putOne(service)) })
	group.Go(func() { w.check(w.putOne(slice)) })
	group.Go(func() { w.check(upsert(w.ctx, pod, pods.Update, pods.Create)) })
	group.Wait()
}

func (w *serverWriter) awaitMark(mark int) {
	for {
		s := w.kube.GetService("shop." + markSpace + ".svc.cluster.local")
		if s != nil && s.Ports[0].Number == uint32(mark) && isMarked(w.kube.InstancesByPort(s, 0), mark) {
			return
		}
		select {
		case <-w.progress:
		case <-time.After(50 * time.Millisecond):
		case <-w.ctx.Done():
			return
		}
	}
}

func isMarked(instances []*registry.ServiceInstance, mark int) bool {
	return len(instances) == 1 && instances[0].Endpoint.EndpointPort == uint32(mark) &&
		instances[0].Endpoint.Attributes().Labels["mark"] == strconv.Itoa(mark)
}

// clear deletes everything.
func (w *serverWriter) clear() {
	none, all := metav1.DeleteOptions{GracePeriodSeconds: new(int64)}, metav1.ListOptions{}
	var group sync.WaitGroup
	for _, name := range suiteSpaces() {
		services := w.client.CoreV1().RESTClient().Delete().Namespace(name).Resource("services")
		group.Go(func() { w.check(services.Do(w.ctx).Error()) })
		group.Go(func() { w.check(w.client.CoreV1().Pods(name).DeleteCollection(w.ctx, none, all)) })
		group.Go(func() { w.check(w.client.DiscoveryV1().EndpointSlices(name).DeleteCollection(w.ctx, none, all)) })
	}
	group.Wait()
}
