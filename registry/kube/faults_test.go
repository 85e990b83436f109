// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/pilotkit/pilotkit/internal/test/kubetest"
	"github.com/pilotkit/pilotkit/internal/test/tier"
)

// config is where clients find their configuration: a server, or a proxy.
type config interface{ Config() kubetest.Config }

func newClient(t *testing.T, of config) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(restConfig(of.Config()))
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// The API server is killed and restarted, twice, while everything changes: the state stays
// meanwhile, and no event is lost or duplicated.
func TestServerRestartsUnderLoad(t *testing.T) {
	tier.OnlyFull(t, "faults of an API server")
	server := kubetest.Start(t)
	namespace := server.Namespace(t)
	s := newScene(t, restConfig(server.Config()))
	ledger := s.follow()
	load, end := startLoad(t, newClient(t, server), namespace)
	for range 2 {
		load.await(200, 0)
		// The load is random: how many services there are is, too.
		s.await("half of the services", func() bool { return len(s.kube.Services()) >= loadServices/2 })
		server.Stop()
		// A kind has an error when its watch has ended, and then all earlier events have been
		// received.
		s.await("the errors of all kinds", func() bool { return len(s.kube.Errors()) == 5 })
		if err := s.kube.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		kept := s.shown()
		if len(s.kube.Services()) < loadServices/4 {
			t.Errorf("only %d services before the restart", len(s.kube.Services()))
		}
		load.await(0, 40)
		if diff := cmp.Diff(kept, s.shown()); diff != "" {
			t.Errorf("without a server the registry changes (-before +after):\n%s", diff)
		}
		server.Restart(t)
	}
	load.await(200, 0)
	end()
	s.equalsAnew(ledger, server)
	s.await("the end of the errors", func() bool { return len(s.kube.Errors()) == 0 })
}

// Watches are interrupted, and connections rejected for a while, while everything changes on
// another path.
func TestCutWatchesUnderLoad(t *testing.T) {
	server := apiserver.Server(t)
	front := server.Front(t)
	s := newScene(t, restConfig(front.Config()))
	ledger := s.follow()
	load, end := startLoad(t, newClient(t, server), server.Namespace(t))
	for round := range 6 {
		load.await(60, 0)
		if round%2 == 0 {
			front.Cut()
			continue
		}
		front.Refuse(true)
		load.await(60, 0)
		front.Refuse(false)
	}
	load.await(60, 0)
	end()
	s.equalsAnew(ledger, server)
}

// Revisions that the registry has not seen are compacted in etcd: its watches end with "too old
// resource version", and it relists, while everything changes.
func TestCompactionUnderLoad(t *testing.T) {
	tier.OnlyFull(t, "faults of an API server")
	// Without its cache the server reads changes from etcd.
	server := kubetest.Start(t, "--watch-cache=false", "--etcd-compaction-interval=1s")
	direct := newClient(t, server)
	front := server.Front(t)
	s := newScene(t, restConfig(front.Config()))
	ledger := s.follow()
	namespace := server.Namespace(t)
	load, end := startLoad(t, direct, namespace)
	load.await(200, 0)
	front.Refuse(true)
	list, err := direct.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	load.await(100, 0)
	s.await("compaction", func() bool { return isTooOld(t, direct, namespace, list.ResourceVersion) })
	front.Refuse(false)
	load.await(100, 0)
	end()
	s.equalsAnew(ledger, server)
}

// isTooOld reports whether changes since a revision cannot be watched any more.
func isTooOld(t *testing.T, client kubernetes.Interface, namespace, revision string) bool {
	t.Helper()
	seconds := int64(5)
	w, err := client.CoreV1().Pods(namespace).Watch(t.Context(), metav1.ListOptions{ResourceVersion: revision, TimeoutSeconds: &seconds})
	if err != nil {
		return apierrors.IsResourceExpired(err) || apierrors.IsGone(err)
	}
	defer w.Stop()
	e, ok := <-w.ResultChan()
	return ok && e.Type == watch.Error && apierrors.IsResourceExpired(apierrors.FromObject(e.Object))
}

// A server whose answers take long is as good as another one.
func TestSlowServer(t *testing.T) {
	server := apiserver.Server(t)
	front := server.Front(t)
	front.Delay(150 * time.Millisecond)
	s := newScene(t, restConfig(front.Config()))
	ledger := s.follow()
	load, end := startLoad(t, newClient(t, server), server.Namespace(t))
	s.await("the initial state", s.kube.HasSynced)
	load.await(200, 0)
	end()
	s.equalsAnew(ledger, server)
	if errs := s.kube.Errors(); len(errs) > 0 {
		t.Errorf("errors: %v", errs)
	}
}

// A server that delays its responses delays changes, but loses none.
func TestServerThatHangs(t *testing.T) {
	server := apiserver.Server(t)
	front := server.Front(t)
	s := newScene(t, restConfig(front.Config()))
	ledger := s.follow()
	load, end := startLoad(t, newClient(t, server), server.Namespace(t))
	s.await("the initial state", s.kube.HasSynced)
	front.Hold(true)
	load.await(200, 0)
	front.Hold(false)
	end()
	s.equalsAnew(ledger, server)
}
