// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/pilotkit/pilotkit/internal/test/kubetest"
	"github.com/pilotkit/pilotkit/internal/test/tier"
)

// manyObjects is how many there are to be; fillTime bounds how long they are written:
// an API server takes some hundreds a second, and the machine may be busy.
const (
	manyObjects = 20_000
	fillTime    = 30 * time.Second
	// Each service has a slice of that many pods.
	podsEach = 18
)

// TestManyObjects reads as many objects as can be written in time, and loses and
// repeats none when the connection breaks.
func TestManyObjects(t *testing.T) {
	tier.OnlyFull(t, "many objects in an API server")
	server := kubetest.Start(t)
	front := server.Front(t)
	namespace := server.Namespace(t)
	services := fillMany(t, newClient(t, server), namespace)
	t.Logf("%d objects", services*(podsEach+2))
	s := newScene(t, restConfig(front.Config()))
	ledger := s.follow()
	start := time.Now()
	s.await("the initial state", s.kube.HasSynced)
	t.Logf("read in %v", time.Since(start))
	endpoints := 0
	for _, service := range s.kube.Services() {
		if service.Attributes.Namespace == namespace {
			endpoints += len(s.kube.InstancesByPort(service, 0))
		}
	}
	if endpoints != services*podsEach {
		t.Errorf("%d endpoints, want %d of each of %d services", endpoints, podsEach, services)
	}

	// The relist has all objects, but only one of them has changed.
	s.recorder.take()
	front.Refuse(true)
	server.Restart(t)
	client := newClient(t, server)
	slice := manySlice(namespace, 0)
	slice.Endpoints = slice.Endpoints[1:]
	s.must(client.DiscoveryV1().EndpointSlices(namespace).Update(t.Context(), slice, metav1.UpdateOptions{}))
	front.Refuse(false)
	s.equalsAnew(ledger, server)
	var got []string
	for _, c := range s.recorder.take() {
		if c.name != callConfigUpdate && c.namespace == namespace {
			got = append(got, c.name+" "+string(c.hostname))
		}
	}
	if want := []string{callEDSUpdate + " " + manyName(0) + "." + namespace + ".svc.cluster.local"}; !slices.Equal(got, want) {
		t.Errorf("calls after the relist: %v, want %v", got[:min(len(got), 10)], want)
	}
}

func manyName(service int) string { return fmt.Sprintf("many-%d", service) }

func manySlice(namespace string, service int) *discoveryv1.EndpointSlice {
	slice := shopSlice(namespace)
	slice.Name, slice.Labels = manyName(service), map[string]string{discoveryv1.LabelServiceName: manyName(service)}
	for i := range podsEach {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{fmt.Sprintf("10.%d.%d.%d", 100+service>>8, service&255, i+1)},
			TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: namespace, Name: fmt.Sprintf("%s-%d", manyName(service), i)},
		})
	}
	return slice
}

// fillMany writes services with their slices and pods, and returns how many.
func fillMany(t *testing.T, client kubernetes.Interface, namespace string) int {
	t.Helper()
	ctx := t.Context()
	work := make(chan int)
	var writers sync.WaitGroup
	for range 16 {
		writers.Go(func() {
			for service := range work {
				if err := writeMany(ctx, client, namespace, service); err != nil {
					t.Error(err)
				}
			}
		})
	}
	deadline := time.After(fillTime)
	written := 0
	for full := false; written < manyObjects/(podsEach+2) && !full; {
		select {
		case work <- written:
			written++
		case <-deadline:
			full = true
		}
	}
	close(work)
	writers.Wait()
	return written
}

func writeMany(ctx context.Context, client kubernetes.Interface, namespace string, service int) error {
	s := shopService(namespace)
	s.Name, s.Spec.Selector = manyName(service), map[string]string{"app": manyName(service)}
	if _, err := client.CoreV1().Services(namespace).Create(ctx, s, metav1.CreateOptions{}); err != nil {
		return err
	}
	for i := range podsEach {
		p := shopPod(namespace, fmt.Sprintf("%s-%d", manyName(service), i))
		if _, err := client.CoreV1().Pods(namespace).Create(ctx, p, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	_, err := client.DiscoveryV1().EndpointSlices(namespace).Create(ctx, manySlice(namespace, service), metav1.CreateOptions{})
	return err
}
