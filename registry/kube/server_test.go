// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/pilotkit/pilotkit/internal/test/kubetest"
	"github.com/pilotkit/pilotkit/internal/test/tier"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/kube"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// scene is a registry that runs against a real API server.
type scene struct {
	*testing.T
	client kubernetes.Interface
	kube   *kube.Controller
	index  *xdsupdate.EndpointIndex
	// recorder has the calls of the updater.
	recorder *recorder
	// progress gets a value after calls of the updater.
	progress chan struct{}
}

// progressing notifies a scene of the calls of its updater.
type progressing struct {
	*recorder
	progress chan struct{}
}

func (p progressing) UpdateBatch(publish func(xdsupdate.XDSUpdater)) {
	publish(p.recorder)
	select {
	case p.progress <- struct{}{}:
	default:
	}
}

func newScene(t *testing.T, config *rest.Config) *scene {
	t.Helper()
	return newSceneWith(t, config, kube.Options{})
}

func newSceneWith(t *testing.T, config *rest.Config, options kube.Options) *scene {
	t.Helper()
	options.ClusterID = "real"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	s := &scene{T: t, client: client, index: xdsupdate.NewEndpointIndex(), progress: make(chan struct{}, 1)}
	s.recorder = &recorder{index: s.index}
	s.kube = kube.New(client, progressing{s.recorder, s.progress}, options)
	stop := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() { s.kube.Run(stop) })
	t.Cleanup(func() {
		close(stop)
		running.Wait()
	})
	return s
}

// await waits until a condition holds. It is looked at after each batch, and now
// and then.
func (s *scene) await(what string, holds func() bool) {
	s.Helper()
	deadline := time.After(90 * time.Second)
	for !holds() {
		select {
		case <-s.progress:
		case <-time.After(50 * time.Millisecond):
		case <-deadline:
			s.Fatalf("%s: it does not come; errors: %v", what, s.kube.Errors())
		}
	}
}

func (s *scene) addresses(host, namespace string) []string {
	var out []string
	for e := range s.index.Service(registry.Hostname(host), namespace).All() {
		out = append(out, e.Address()+"@"+e.Attributes().ServiceAccount)
	}
	slices.Sort(out)
	return out
}

func (s *scene) awaitAddresses(namespace string, want ...string) {
	s.Helper()
	s.await("addresses "+strings.Join(want, " "), func() bool {
		return slices.Equal(s.addresses("shop."+namespace+".svc.cluster.local", namespace), want)
	})
}

func (s *scene) must(_ any, err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func shopService(namespace string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: namespace},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": "shop"},
			Ports:    []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromInt32(8080)}},
		},
	}
}

func shopPod(namespace, name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: map[string]string{"app": "shop"}},
		Spec:       corev1.PodSpec{ServiceAccountName: "clerk", Containers: []corev1.Container{{Name: "c", Image: "none"}}},
	}
}

func shopSlice(namespace string, addresses ...string) *discoveryv1.EndpointSlice {
	name, number := "http", int32(8080)
	s := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name: "shop-1", Namespace: namespace, Labels: map[string]string{discoveryv1.LabelServiceName: "shop"},
		},
		AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: &name, Port: &number}},
	}
	for _, a := range addresses {
		e := discoveryv1.Endpoint{Addresses: []string{a}}
		if a == "10.1.0.1" {
			e.TargetRef = &corev1.ObjectReference{Kind: "Pod", Name: "p1", Namespace: namespace}
		}
		s.Endpoints = append(s.Endpoints, e)
	}
	return s
}

const clerk = "10.1.0.1@spiffe://cluster.local/ns/"

// fill makes a service with a pod and a slice.
func (s *scene) fill(ctx context.Context, client kubernetes.Interface, namespace string) {
	s.Helper()
	s.must(client.CoreV1().Services(namespace).Create(ctx, shopService(namespace), metav1.CreateOptions{}))
	s.must(client.CoreV1().Pods(namespace).Create(ctx, shopPod(namespace, "p1"), metav1.CreateOptions{}))
	s.must(client.DiscoveryV1().EndpointSlices(namespace).Create(ctx, shopSlice(namespace, "10.1.0.1", "10.1.0.2"), metav1.CreateOptions{}))
}

func TestAPIServer(t *testing.T) {
	server := apiserver.Server(t)
	namespace := server.Namespace(t)
	s := newScene(t, restConfig(server.Config()))
	ctx := t.Context()
	s.fill(ctx, s.client, namespace)
	s.awaitAddresses(namespace, clerk+namespace+"/sa/clerk", "10.1.0.2@")
	s.await("the initial state", s.kube.HasSynced)
	if errs := s.kube.Errors(); len(errs) > 0 {
		t.Errorf("errors: %v", errs)
	}

	s.must(s.client.DiscoveryV1().EndpointSlices(namespace).Update(ctx, shopSlice(namespace, "10.1.0.1", "10.1.0.3"), metav1.UpdateOptions{}))
	s.awaitAddresses(namespace, clerk+namespace+"/sa/clerk", "10.1.0.3@")

	zero := int64(0)
	s.must(nil, s.client.CoreV1().Pods(namespace).Delete(ctx, "p1", metav1.DeleteOptions{GracePeriodSeconds: &zero}))
	s.awaitAddresses(namespace, "10.1.0.3@")

	s.must(nil, s.client.CoreV1().Services(namespace).Delete(ctx, "shop", metav1.DeleteOptions{}))
	s.awaitAddresses(namespace)
	if got := s.kube.GetService(registry.Hostname("shop." + namespace + ".svc.cluster.local")); got != nil {
		t.Errorf("the deleted service is shown: %v", got)
	}
}

// behindFront returns a registry behind a front that knows what fill has written, and a
// client that goes past the front.
func behindFront(t *testing.T) (s *scene, front *kubetest.Front, direct kubernetes.Interface, namespace string) {
	t.Helper()
	server := apiserver.Server(t)
	namespace = server.Namespace(t)
	front = server.Front(t)
	direct, err := kubernetes.NewForConfig(restConfig(server.Config()))
	if err != nil {
		t.Fatal(err)
	}
	s = newScene(t, restConfig(front.Config()))
	s.fill(t.Context(), direct, namespace)
	s.awaitAddresses(namespace, clerk+namespace+"/sa/clerk", "10.1.0.2@")
	return s, front, direct, namespace
}

// Changes during the interruption of the connection are visible after the relist, and unchanged
// objects are not reported again.
func TestCutConnection(t *testing.T) {
	s, front, direct, namespace := behindFront(t)
	ctx := t.Context()

	front.Refuse(true)
	front.Cut()
	s.must(direct.DiscoveryV1().EndpointSlices(namespace).Update(ctx, shopSlice(namespace, "10.1.0.1"), metav1.UpdateOptions{}))
	if got := s.addresses("shop."+namespace+".svc.cluster.local", namespace); len(got) != 2 {
		t.Errorf("without a connection: addresses %v, want the last ones", got)
	}
	front.Refuse(false)
	s.awaitAddresses(namespace, clerk+namespace+"/sa/clerk")
	s.await("the end of the errors", func() bool { return len(s.kube.Errors()) == 0 })
}

// A server that is restarted has forgotten the revisions that watches were at.
func TestRestartedServer(t *testing.T) {
	tier.OnlyFull(t, "faults of an API server")
	server := kubetest.Start(t)
	namespace := server.Namespace(t)
	s := newScene(t, restConfig(server.Config()))
	ctx := t.Context()
	s.fill(ctx, s.client, namespace)
	s.awaitAddresses(namespace, clerk+namespace+"/sa/clerk", "10.1.0.2@")
	server.Stop()
	server.Restart(t)
	s.must(s.client.DiscoveryV1().EndpointSlices(namespace).Update(ctx, shopSlice(namespace, "10.1.0.9"), metav1.UpdateOptions{}))
	s.must(nil, s.client.CoreV1().Pods(namespace).Delete(ctx, "p1", metav1.DeleteOptions{GracePeriodSeconds: new(int64)}))
	s.awaitAddresses(namespace, "10.1.0.9@")
}
