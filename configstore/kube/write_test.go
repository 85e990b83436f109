// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/atomic"
	networking "istio.io/api/networking/v1alpha3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/kube"
	"github.com/pilotkit/pilotkit/internal/test/kubetest"
)

// istioServer returns the shared server with Istio's CRDs, a cache of its kinds, and
// a namespace. The cache leaves validation to the server.
func istioServer(t *testing.T) (server *kubetest.Server, c *kube.Cache, namespace string) {
	t.Helper()
	server = apiserver.Server(t)
	server.ApplyCRDs(t, kubetest.IstioCRDs(t))
	c = newCache(t, restConfig(server.Config()), istio.Schemas(), kube.Options{SkipValidation: true})
	runSynced(t, c)
	return server, c, server.Namespace(t)
}

func entry(namespace, name string) configstore.Config {
	return configstore.Config{
		Meta: configstore.Meta{GroupVersionKind: istio.ServiceEntry, Namespace: namespace, Name: name},
		Spec: &networking.ServiceEntry{
			Hosts: []string{"a.example.com"}, Resolution: networking.ServiceEntry_DNS,
			Ports: []*networking.ServicePort{{Number: 80, Name: "http", Protocol: "HTTP"}},
		},
	}
}

// TestRefusals: a rejection by the API server is an error of package configstore, or the API
// server's own.
func TestRefusals(t *testing.T) {
	_, c, ns := istioServer(t)
	bad := entry(ns, "bad")
	bad.Spec = &networking.ServiceEntry{Hosts: []string{"*"}}
	_, err := c.Create(bad)
	var invalid *configstore.ValidationError
	if !errors.As(err, &invalid) || invalid.Key != bad.Key() || !strings.Contains(invalid.Violations[0].Field, "spec.hosts") {
		t.Errorf("Create of what the CRD forbids = %v, want a violation of spec.hosts", err)
	}
	if _, err := c.Create(entry("", "nowhere")); !errors.Is(err, configstore.ErrInvalid) {
		t.Errorf("Create without a namespace = %v, want ErrInvalid", err)
	}
	if _, err := c.Create(entry("no-such-namespace", "a")); err == nil || errors.Is(err, configstore.ErrNotFound) || !apierrors.IsNotFound(unwrapAll(err)) {
		t.Errorf("Create in a namespace that does not exist = %v, want the API server's error", err)
	}
	revision := create(t, c, entry(ns, "a"))
	older := "1"
	if err := c.Delete(istio.ServiceEntry, "a", ns, &older); !errors.Is(err, configstore.ErrConflict) {
		t.Errorf("Delete of an older version = %v, want ErrConflict", err)
	}
	if err := c.Delete(istio.ServiceEntry, "a", ns, &revision); err != nil {
		t.Errorf("Delete of the version = %v", err)
	}
}

// unwrapAll returns the innermost error.
func unwrapAll(err error) error {
	for inner := err; inner != nil; inner = errors.Unwrap(inner) {
		err = inner
	}
	return err
}

// TestAllKinds: each of Istio's kinds passes through the API server, under the version of its CRD.
func TestAllKinds(t *testing.T) {
	_, c, _ := istioServer(t)
	for _, s := range c.Schemas().All() {
		t.Run(s.GroupVersionKind.Kind, func(t *testing.T) {
			key := configstore.ConfigKey{Kind: s.GroupVersionKind, Namespace: "default", Name: "absent"}
			if err := c.Delete(key.Kind, key.Name, key.Namespace, nil); !errors.Is(err, configstore.ErrNotFound) {
				t.Errorf("Delete of what does not exist = %v, want ErrNotFound", err)
			}
		})
	}
	expectErrors(t, c)
}

// TestUpdateKeeps: an Update preserves the fields that a Config does not have, and writes nothing
// if nothing changes.
func TestUpdateKeeps(t *testing.T) {
	server, c, ns := istioServer(t)
	created := entry(ns, "a")
	create(t, c, created)
	schema, _ := istio.Schemas().Find(istio.ServiceEntry)
	entries := newLive(t, restConfig(server.Config()), istio.Schemas()).resource(schema).Namespace(ns)
	u, err := entries.Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	u.SetFinalizers([]string{"example.com/keep"})
	if u, err = entries.Update(t.Context(), u, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if revision := update(t, c, created); revision != u.GetResourceVersion() {
		t.Errorf("an Update that changes nothing made revision %s of %s", revision, u.GetResourceVersion())
	}
	created.Labels = map[string]string{"new": "label"}
	await(t, c, created, update(t, c, created))
	if u, err = entries.Get(t.Context(), "a", metav1.GetOptions{}); err != nil || len(u.GetFinalizers()) != 1 || u.GetLabels()["new"] != "label" {
		t.Errorf("after an Update the object is %v, %v; want the label and the finalizer", u, err)
	}
	// With a finalizer a Delete only marks the object.
	if err := c.Delete(istio.ServiceEntry, "a", ns, nil); err != nil {
		t.Fatal(err)
	}
	if u, err = entries.Get(t.Context(), "a", metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}
	u.SetFinalizers(nil)
	if _, err := entries.Update(t.Context(), u, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	await(t, c, created, "")
}

// TestRace: of concurrent writers with the same revision one succeeds, and all writers without a
// revision succeed.
func TestRace(t *testing.T) {
	_, c, ns := istioServer(t)
	first := entry(ns, "raced")
	first.ResourceVersion = create(t, c, first)
	var won, conflicts, others atomic.Int64
	race := func(revision string) {
		var writers sync.WaitGroup
		for i := range 8 {
			writers.Go(func() {
				mine := first
				mine.ResourceVersion, mine.Labels = revision, map[string]string{"writer": fmt.Sprint(i)}
				switch _, err := c.Update(mine); {
				case err == nil:
					won.Inc()
				case errors.Is(err, configstore.ErrConflict):
					conflicts.Inc()
				default:
					t.Error(err)
					others.Inc()
				}
			})
		}
		writers.Wait()
	}
	if race(first.ResourceVersion); won.Load() != 1 || conflicts.Load() != 7 {
		t.Errorf("with one revision %d won and %d had a conflict", won.Load(), conflicts.Load())
	}
	if race(""); won.Load() != 9 {
		t.Errorf("without a revision %d of 8 won", won.Load()-1)
	}
}

// TestTimeouts: a write to a silent API server ends, and so does waiting for an object that does
// not arrive.
func TestTimeouts(t *testing.T) {
	server := apiserver.Server(t)
	schemas := limits("timeouts.example.com")
	kind := schemas.All()[0].GroupVersionKind
	server.ApplyCRDs(t, crdsOf(schemas))
	front := server.Front(t)
	c := newCache(t, restConfig(front.Config()), schemas, kube.Options{WriteTimeout: 100 * time.Millisecond})
	front.Hold(true)
	a := object(kind, "default", "a", "1")
	if _, err := c.Create(a); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Create at a silent server = %v, want the end of the time", err)
	}
	front.Hold(false)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := c.Await(ctx, a.Key(), "1"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Await of what does not come = %v", err)
	}
	a.GroupVersionKind.Kind = "Unknown"
	if err := c.Await(ctx, a.Key(), "1"); !errors.Is(err, configstore.ErrUnknownKind) {
		t.Errorf("Await of an unknown kind = %v", err)
	}
}
