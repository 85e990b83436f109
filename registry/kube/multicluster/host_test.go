// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/atomic"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/kube"
	"github.com/pilotkit/pilotkit/registry/kube/internal/standin"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// newUnread returns a controller whose Secrets a test sets itself.
func newUnread(t *testing.T, o Options) *Controller {
	t.Helper()
	client, err := kubernetes.NewForConfig(&rest.Config{Host: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	if o.Updater == nil {
		o.Updater = xdsupdate.Discard{}
	}
	c := New(client, aggregate.NewController(), o)
	ctx, cancel := context.WithCancel(t.Context())
	c.ctx = ctx
	t.Cleanup(func() {
		cancel()
		c.group.Wait()
	})
	return c
}

// kubeconfigAt is a kubeconfig of the server at a URL.
func kubeconfigAt(url string) string {
	return `{"apiVersion": "v1", "kind": "Config", "current-context": "x",
	"clusters": [{"name": "c", "cluster": {"server": "` + url + `"}}], "users": [{"name": "u", "user": {"token": "t"}}],
	"contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}]}`
}

// empty answers for a cluster without objects.
func empty(string, *http.Request) standin.Answer { return standin.Answer{Revision: "1"} }

func secret(name, cluster, kubeconfig string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string][]byte{cluster: []byte(kubeconfig)}}
}

// A second Run panics, and leaves no lock held.
func TestRunTwice(t *testing.T) {
	c := newUnread(t, Options{})
	func() {
		defer func() {
			if got, want := recover(), "multicluster: Run called twice"; got != want {
				t.Errorf("panic %v, want %q", got, want)
			}
		}()
		c.Run(nil)
	}()
	if !c.mu.TryLock() {
		t.Fatal("the controller stays locked")
	}
	c.mu.Unlock()
}

// lookingHandler is a handler of log records that looks at the clusters.
type lookingHandler struct {
	slog.Handler
	look func()
}

func (h lookingHandler) Handle(ctx context.Context, r slog.Record) error {
	h.look()
	return h.Handler.Handle(ctx, r)
}

// What logs that a cluster is in two Secrets may look at the clusters.
func TestLoggerLooksAtTheClusters(t *testing.T) {
	logged := make(chan string, 8)
	var c *Controller
	var looked, locked atomic.Bool
	c = newUnread(t, Options{Logger: slog.New(lookingHandler{slog.NewTextHandler(channel(logged), nil), func() {
		looked.Store(true)
		if c.mu.TryLock() {
			c.mu.Unlock()
		} else {
			locked.Store(true)
		}
	}})})
	c.mu.Lock()
	c.clusters = map[registry.ClusterID]*remote{"one": {wanted: &kubeconfig{"a", "x"}, status: Cluster{ID: "one", Secret: "a"}}} // which is not to be touched
	c.mu.Unlock()
	if err := (*store)(c).Replace([]any{secret("b", "one", "y"), secret("a", "one", "x")}, ""); err != nil {
		t.Fatal(err)
	}
	if got, want := <-logged, `"a cluster is in two secrets" cluster=one used=a ignored=b`; !strings.Contains(got, want) || !looked.Load() || locked.Load() {
		t.Errorf("locked %t; logged %s, want %s", locked.Load(), got, want)
	}
}

// A panic of a function of the host fails only the cluster of the call.
func TestPanicsOfTheHost(t *testing.T) {
	for name, o := range map[string]Options{
		"Registry": {Registry: func(registry.ClusterID) kube.Options { panic("Registry") }},
		"Created":  {Created: func(*kube.Controller) { panic("Created") }},
	} {
		t.Run(name, func(t *testing.T) {
			logged := make(chan string, 8)
			o.Logger = slog.New(slog.NewTextHandler(channel(logged), nil))
			o.Updater = panicking{}
			c := newUnread(t, o)
			if err := (*store)(c).Add(secret("a", "one", kubeconfigAt(standin.Serve(t, empty)))); err != nil {
				t.Fatal(err)
			}
			if got, want := <-logged, fmt.Sprintf(`what="functions of a cluster" error="panic: %s" cluster=one`, name); !strings.Contains(got, want) {
				t.Errorf("logged %s, want %s", got, want)
			}
			<-logged // that the cluster cannot be used
			if got := c.Clusters(); len(got) != 1 || got[0].State != Failed || got[0].Err == nil || got[0].Err.Error() != "panic: "+name {
				t.Errorf("clusters %+v, want a failed one", got)
			}
			if !c.mu.TryLock() {
				t.Fatal("the controller stays locked")
			}
			c.mu.Unlock()
		})
	}
}

// TestPending: WaitForSync says that Run has not been called, and else which cluster it waits for.
func TestPending(t *testing.T) {
	pending := func(c *Controller) string { return configstore.Pending(c) }
	forgotten := New(nil, aggregate.NewController(), Options{Updater: xdsupdate.Discard{}})
	if got, want := pending(forgotten), "*multicluster.Controller (Run has not been called)"; got != want {
		t.Errorf("without Run: %s, want %s", got, want)
	}
	ended := make(chan struct{})
	silent := standin.Serve(t, func(string, *http.Request) standin.Answer {
		<-ended
		return standin.Answer{Revision: "1"}
	})
	t.Cleanup(func() { close(ended) })
	c := newUnread(t, Options{SyncTimeout: time.Hour})
	if err := (*store)(c).Add(secret("s", "far", kubeconfigAt(silent))); err != nil {
		t.Fatal(err)
	}
	if got, want := pending(c), "*multicluster.Controller (cluster far has not been read)"; got != want {
		t.Errorf("with a cluster that does not answer: %s, want %s", got, want)
	}
}

// TestForgottenUpdater: the log says what is not pushed, and what to do.
func TestForgottenUpdater(t *testing.T) {
	for updater, want := range map[xdsupdate.XDSUpdater]int{nil: 1, xdsupdate.Discard{}: 0} {
		var log strings.Builder
		New(nil, aggregate.NewController(), Options{Updater: updater, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		const text = `level=WARN msg="multicluster.Options has no Updater, so that only services are pushed when clusters come and go: ` +
			`set it to the ads.Server; xdsupdate.Discard{} means that none is wanted"`
		if got := strings.Count(log.String(), text); got != want {
			t.Errorf("%T: %d warnings, want %d: %s", updater, got, want, &log)
		}
	}
}

// TestRemovalIsPushed: when a cluster is removed, everything is pushed. A panic of the updater does
// not keep the cluster.
func TestRemovalIsPushed(t *testing.T) {
	logged := make(chan string, 8)
	c := newUnread(t, Options{Updater: panicking{}, Logger: slog.New(slog.NewTextHandler(channel(logged), nil))})
	gone := &running{registry: kube.New(nil, xdsupdate.Discard{}), stop: make(chan struct{})}
	gone.done.Go(func() { gone.registry.Run(gone.stop) })
	if removed := (&remote{Controller: c, status: Cluster{ID: "one"}, current: gone}).remove(); !removed {
		t.Error("the cluster is not removed")
	}
	close(logged)
	if got, want := <-logged, `what=updater error="panic: ConfigUpdate" cluster=one`; !strings.Contains(got, want) {
		t.Errorf("logged %q, want %s", got, want)
	}
}

type panicking struct{ xdsupdate.Discard }

func (panicking) ConfigUpdate(*xdsupdate.PushRequest) { panic("ConfigUpdate") }

// channel is a writer that hands on each record.
type channel chan string

func (c channel) Write(p []byte) (int, error) {
	c <- string(p)
	return len(p), nil
}
