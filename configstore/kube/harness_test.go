// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/kube"
	"github.com/pilotkit/pilotkit/internal/test/kubetest"
)

// patience is the maximum time that a test waits for an expected event.
const patience = 60 * time.Second

// crdOf returns the CRD of a schema, with all of its versions, as JSON.
func crdOf(s configstore.Schema) string {
	scope := "Namespaced"
	if s.ClusterScoped {
		scope = "Cluster"
	}
	gvk := s.GroupVersionKind
	var versions []map[string]any
	for i, v := range append([]string{gvk.Version}, s.Aliases...) {
		version := map[string]any{
			"name": v, "served": true, "storage": i == 0,
			"schema": map[string]any{"openAPIV3Schema": map[string]any{
				"type": "object", "x-kubernetes-preserve-unknown-fields": true,
			}},
		}
		if s.Status != nil {
			version["subresources"] = map[string]any{"status": map[string]any{}}
		}
		versions = append(versions, version)
	}
	data, err := json.Marshal(map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": s.Plural + "." + gvk.Group},
		"spec": map[string]any{
			"group": gvk.Group, "scope": scope, "versions": versions,
			"names": map[string]any{"kind": gvk.Kind, "plural": s.Plural, "singular": strings.ToLower(gvk.Kind)},
		},
	})
	if err != nil {
		panic(err)
	}
	return string(data)
}

func crdsOf(schemas configstore.Schemas) []byte {
	var out []string
	for _, s := range schemas.All() {
		out = append(out, crdOf(s))
	}
	return []byte(strings.Join(out, "\n---\n"))
}

// newCache returns a cache that retries quickly.
func newCache(tb testing.TB, config *rest.Config, schemas configstore.Schemas, opts kube.Options) *kube.Cache {
	tb.Helper()
	opts.MaxBackoff = 100 * time.Millisecond
	c, err := kube.New(config, schemas, opts)
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// run runs a cache until the test ends, or until the returned function is called.
func run(tb testing.TB, c configstore.ConfigStoreCache) (end func()) {
	tb.Helper()
	return runAny(tb, c.Run)
}

// runAny is run for any function.
func runAny(tb testing.TB, run func(stop <-chan struct{})) (end func()) {
	tb.Helper()
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		run(stop)
	}()
	done := false
	end = func() {
		if !done {
			done = true
			close(stop)
			<-ended
		}
	}
	tb.Cleanup(end)
	return end
}

// runSynced runs a cache and returns when it has synced.
func runSynced(tb testing.TB, c *kube.Cache) (end func()) {
	tb.Helper()
	end = run(tb, c)
	ctx, cancel := context.WithTimeout(tb.Context(), patience)
	defer cancel()
	if err := configstore.WaitForSync(ctx, c); err != nil {
		tb.Fatalf("%v; errors: %v", err, c.Errors())
	}
	return end
}

// eventually waits until a condition holds.
func eventually(tb testing.TB, what string, holds func() bool) {
	tb.Helper()
	again := time.NewTicker(2 * time.Millisecond)
	defer again.Stop()
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	for !holds() {
		select {
		case <-again.C:
		case <-timeout.C:
			tb.Fatalf("not within %v: %s", patience, what)
		}
	}
}

// live reads the API server's objects of some kinds.
type live struct {
	client  dynamic.Interface
	schemas configstore.Schemas
}

func newLive(tb testing.TB, config *rest.Config, schemas configstore.Schemas) *live {
	tb.Helper()
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		tb.Fatal(err)
	}
	return &live{client, schemas}
}

func (l *live) resource(s configstore.Schema) dynamic.NamespaceableResourceInterface {
	gvk := s.GroupVersionKind
	return l.client.Resource(schema.GroupVersionResource{Group: gvk.Group, Version: gvk.Version, Resource: s.Plural})
}

// state returns the resource version of each object.
func (l *live) state(ctx context.Context) (map[string]string, error) {
	state := map[string]string{}
	for _, s := range l.schemas.All() {
		list, err := l.resource(s).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		for _, o := range list.Items {
			state[s.Plural+" "+o.GetNamespace()+"/"+o.GetName()] = o.GetResourceVersion()
		}
	}
	return state, nil
}

// shown returns the resource versions in a cache.
func shown(c configstore.Reader) map[string]string {
	state := map[string]string{}
	for _, s := range c.Schemas().All() {
		for _, o := range c.List(s.GroupVersionKind, configstore.NamespaceAll) {
			state[s.Plural+" "+o.Namespace+"/"+o.Name] = o.ResourceVersion
		}
	}
	return state
}

// fill creates objects concurrently.
func fill(tb testing.TB, server *kubetest.Server, schemas configstore.Schemas, namespace string, objects int) {
	tb.Helper()
	kind := schemas.All()[0].GroupVersionKind
	c := newCache(tb, restConfig(server.Config()), schemas, kube.Options{})
	var writers sync.WaitGroup
	const parallel = 8
	for w := range parallel {
		writers.Go(func() {
			for i := w; i < objects; i += parallel {
				if _, err := c.Create(object(kind, namespace, fmt.Sprintf("o-%d", i), "1")); err != nil {
					tb.Error(err)
					return
				}
			}
		})
	}
	writers.Wait()
}

// clear deletes all objects.
func (l *live) clear(tb testing.TB) {
	tb.Helper()
	for _, s := range l.schemas.All() {
		list, err := l.resource(s).List(context.Background(), metav1.ListOptions{})
		if err != nil {
			tb.Fatal(err)
		}
		for _, o := range list.Items {
			if err := l.resource(s).Namespace(o.GetNamespace()).Delete(context.Background(), o.GetName(), metav1.DeleteOptions{}); err != nil {
				tb.Fatal(fmt.Errorf("delete %s: %w", o.GetName(), err))
			}
		}
	}
}

// serveLimits returns an API server with one kind in a group of the test's own, a namespace, and a
// reader of the stored objects.
func serveLimits(t *testing.T, group string) (
	server *kubetest.Server, schemas configstore.Schemas, kind configstore.GroupVersionKind, namespace string, stored *live,
) {
	t.Helper()
	server, schemas = apiserver.Server(t), limits(group)
	server.ApplyCRDs(t, crdsOf(schemas))
	stored = newLive(t, restConfig(server.Config()), schemas)
	stored.clear(t) // The test may be repeated.
	return server, schemas, schemas.All()[0].GroupVersionKind, server.Namespace(t), stored
}
