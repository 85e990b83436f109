// SPDX-License-Identifier: Apache-2.0

package kubetest_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/pilotkit/pilotkit/internal/kubetest"
)

var apiserver kubetest.Shared

func TestMain(m *testing.M) { apiserver.Main(m) }

// TestPrerequisites is skipped if there is no server; ./test.sh shows what it
// says.
func TestPrerequisites(t *testing.T) { kubetest.Require(t) }

func client(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// soon is for calls that get no answer: clients try again for ten seconds.
func soon(t *testing.T) (context.Context, context.CancelFunc) {
	t.Helper()
	return context.WithTimeout(t.Context(), 100*time.Millisecond)
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func TestConflict(t *testing.T) {
	s := apiserver.Server(t)
	maps := client(t, s.Config()).CoreV1().ConfigMaps(s.Namespace(t))
	created, err := maps.Create(t.Context(), configMap("a"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	fresh := created.DeepCopy()
	fresh.Data = map[string]string{"key": "1"}
	if _, err := maps.Update(t.Context(), fresh, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := maps.Update(t.Context(), created, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Fatalf("a stale Update = %v, want a conflict", err)
	}
}

func TestVersion(t *testing.T) {
	version, err := client(t, apiserver.Server(t).Config()).Discovery().ServerVersion()
	if err != nil || version.GitVersion != kubetest.Version {
		t.Fatalf("the server is %v, %v; want %s", version, err, kubetest.Version)
	}
}

// TestRestart: a server that was killed has its data when it is started again, and
// a watch from before is too old.
func TestRestart(t *testing.T) {
	s := kubetest.Start(t)
	maps := client(t, s.Config()).CoreV1().ConfigMaps("default")
	first, err := maps.Create(t.Context(), configMap("a"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := maps.Create(t.Context(), configMap("b"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.Stop()
	ctx, cancel := soon(t)
	defer cancel()
	if _, err := maps.Get(ctx, "a", metav1.GetOptions{}); err == nil {
		t.Fatal("a stopped server answers")
	}
	s.Restart(t)
	got, err := maps.Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil || got.UID != first.UID {
		t.Fatalf("after the restart: %v, %v; want the object with the UID %s", got, err, first.UID)
	}
	watch, err := maps.Watch(t.Context(), metav1.ListOptions{ResourceVersion: first.ResourceVersion})
	if err == nil {
		defer watch.Stop()
		event := <-watch.ResultChan()
		err = apierrors.FromObject(event.Object)
	}
	if !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
		t.Errorf("watching from before the restart = %v, want too old", err)
	}
}

func TestCRDs(t *testing.T) {
	s := apiserver.Server(t)
	s.ApplyCRDs(t, []byte(limits))
	discovery := client(t, s.Config()).Discovery()
	resources, err := discovery.ServerResourcesForGroupVersion("test.example.com/v1")
	if err != nil || len(resources.APIResources) == 0 {
		t.Fatalf("test.example.com/v1 has %v, %v", resources, err)
	}
	s.DeleteCRD(t, "limits.test.example.com")
}

const limits = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: limits.test.example.com}
spec:
  group: test.example.com
  names: {kind: Limit, plural: limits}
  scope: Namespaced
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`

func TestConfigFor(t *testing.T) {
	s := apiserver.Server(t)
	c := client(t, s.ConfigFor("somebody"))
	if _, err := c.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Fatalf("List by a user without a role = %v, want forbidden", err)
	}
	if _, err := c.Discovery().ServerVersion(); err != nil {
		t.Fatal(err)
	}
}

func TestFront(t *testing.T) {
	s := apiserver.Server(t)
	f := s.Front(t)
	maps := client(t, f.Config()).CoreV1().ConfigMaps(s.Namespace(t))
	watch, err := maps.Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()

	f.Hold(true)
	ctx, cancel := soon(t)
	defer cancel()
	if _, err := maps.List(ctx, metav1.ListOptions{}); err == nil {
		t.Error("List has an answer that is held up")
	}
	f.Hold(false)
	const delay = 50 * time.Millisecond
	f.Delay(delay)
	begin := time.Now()
	if _, err := maps.List(t.Context(), metav1.ListOptions{}); err != nil || time.Since(begin) < delay {
		t.Errorf("List took %v, %v; want at least %v", time.Since(begin), err, delay)
	}
	f.Delay(0)

	f.Refuse(true)
	for range watch.ResultChan() { // It ends because it was cut.
	}
	ctx, cancel = soon(t)
	defer cancel()
	if _, err := maps.List(ctx, metav1.ListOptions{}); err == nil {
		t.Error("List has an answer from a server that refuses")
	}
	f.Refuse(false)
	if _, err := maps.List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("List after the refusal = %v", err)
	}
	f.Cut()
	if _, err := maps.List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("List after a cut = %v", err)
	}
}
