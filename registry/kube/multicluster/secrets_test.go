// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/kube"
	"github.com/pilotkit/pilotkit/registry/kube/internal/standin"
)

// A kubeconfig that is replaced at once, before or as its cluster is connected to,
// does not stay, although its server does not answer.
func TestSecretWrittenTwice(t *testing.T) {
	ended := make(chan struct{})
	silent := standin.Serve(t, func(string, *http.Request) standin.Answer {
		<-ended
		return standin.Answer{Revision: "1"}
	})
	t.Cleanup(func() { close(ended) })
	good := standin.Serve(t, empty)
	var c *Controller
	put := func(name, url string) {
		if err := (*store)(c).Add(secret(name, name, kubeconfigAt(url))); err != nil {
			t.Error(err)
		}
	}
	c = newUnread(t, Options{SyncTimeout: time.Hour, Registry: func(id registry.ClusterID) kube.Options {
		if strings.HasPrefix(string(id), "during") {
			put(string(id), good)
		}
		return kube.Options{}
	}})
	const clusters = 30
	var writers sync.WaitGroup
	for i := range clusters {
		writers.Go(func() {
			if i%2 == 0 {
				put(fmt.Sprintf("during%d", i), silent)
				return
			}
			put(fmt.Sprintf("soon%d", i), silent)
			put(fmt.Sprintf("soon%d", i), good)
		})
	}
	writers.Wait()
	awaitClusters(t, c, "clusters that have synced", func(all []Cluster) bool {
		return len(all) == clusters && !slices.ContainsFunc(all, func(c Cluster) bool { return c.State != Synced })
	})
}

func awaitClusters(t *testing.T, c *Controller, what string, holds func([]Cluster) bool) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	for !holds(c.Clusters()) {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-deadline:
			t.Fatalf("%s: it does not come; clusters %+v", what, c.Clusters())
		}
	}
}

// Of several Secrets with one cluster the oldest is used, independent of its name, so that a new
// Secret never takes over an existing cluster; the others are reported. When the oldest is deleted,
// the next one takes over without a gap.
func TestOldestSecretCounts(t *testing.T) {
	var mu sync.Mutex
	asked := map[string]bool{}
	server := standin.Serve(t, func(_ string, r *http.Request) standin.Answer {
		mu.Lock()
		defer mu.Unlock()
		asked[strings.Split(r.URL.Path, "/")[1]] = true
		return standin.Answer{Revision: "1"}
	})
	logged := make(chan string, 64)
	c := newUnread(t, Options{Logger: slog.New(slog.NewTextHandler(channel(logged), nil))})
	put := func(name string, minute int) *corev1.Secret {
		s := secret(name, "one", kubeconfigAt(server+"/"+name))
		s.CreationTimestamp = metav1.NewTime(time.Date(2026, 1, 1, 0, minute, 0, 0, time.UTC))
		return s
	}
	is := func(name string, ignored ...string) func([]Cluster) bool {
		return func(all []Cluster) bool {
			return len(all) == 1 && all[0].State == Synced && all[0].Secret == name && slices.Equal(all[0].Ignored, ignored)
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must((*store)(c).Add(put("m", 1)))
	awaitClusters(t, c, "the first", is("m"))
	first := c.Clusters()[0]
	must((*store)(c).Add(put("a", 2)))
	must((*store)(c).Add(put("z", 1)))
	awaitClusters(t, c, "the first, of three", is("m", "a", "z"))
	if now := c.Clusters()[0]; now.Registry != first.Registry || now.Since != first.Since || now.Since.IsZero() {
		t.Errorf("another registry, %+v, before %+v", now, first)
	}
	must((*store)(c).Delete(put("m", 1)))
	awaitClusters(t, c, "the next", is("z", "a"))
	must((*store)(c).Replace([]any{put("a", 2)}, ""))
	awaitClusters(t, c, "the last", is("a"))
	mu.Lock()
	defer mu.Unlock()
	if !asked["m"] || !asked["z"] || !asked["a"] {
		t.Errorf("asked %v, want all", asked)
	}
	if len(logged) != 2 { // for a and z; the use of z instead is not reported for a again
		t.Errorf("%d records, want 2", len(logged))
	}
}

// The Registry option determines the kinds that may be forbidden. None may be for a cluster that
// was already read completely.
func TestOptionalKindsOfASuccessor(t *testing.T) {
	nodes := func(code int) string {
		return kubeconfigAt(standin.Serve(t, func(kind string, _ *http.Request) standin.Answer {
			if kind == "nodes" {
				return standin.Answer{Revision: "1", Code: code, Message: "no"}
			}
			return standin.Answer{Revision: "1"}
		}))
	}
	forbidden, allowed := nodes(http.StatusForbidden), nodes(0)
	c := newUnread(t, Options{SyncTimeout: 100 * time.Millisecond, Registry: func(registry.ClusterID) kube.Options {
		return kube.Options{Optional: []string{"nodes"}}
	}})
	var last Cluster
	for i, step := range []struct {
		config string
		state  State
		same   bool
	}{{forbidden, Synced, false}, {allowed, Synced, false}, {forbidden, Late, true}, {allowed, Synced, true}} {
		if err := (*store)(c).Add(secret("a", "one", step.config)); err != nil {
			t.Fatal(err)
		}
		awaitClusters(t, c, fmt.Sprintf("step %d", i), func(all []Cluster) bool {
			return len(all) == 1 && all[0].State == step.state && (i == 0 || (all[0].Registry == last.Registry) == step.same)
		})
		last = c.Clusters()[0]
	}
}
