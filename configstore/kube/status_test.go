// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/kube"
	"github.com/pilotkit/pilotkit/internal/test/kubetest"
)

// plane is one process: a cache with a writer of its statuses.
type plane struct {
	cache  *kube.Cache
	writer *kube.StatusWriter
}

// startPlane starts a process; end stops its writer.
func startPlane(t *testing.T, server *kubetest.Server, schemas configstore.Schemas, opts kube.StatusOptions) (p plane, end func()) {
	t.Helper()
	p.cache = newCache(t, restConfig(server.Config()), schemas, kube.Options{})
	runSynced(t, p.cache)
	opts.Rate = 1000
	var err error
	if p.writer, err = kube.NewStatusWriter(p.cache, restConfig(server.Config()), opts); err != nil {
		t.Fatal(err)
	}
	return p, runAny(t, p.writer.Run)
}

// statements returns the observed generation and the conditions of an object, as text:
// "Type=Status Reason Message".
func statements(t *testing.T, l *live, namespace, name string) []string {
	t.Helper()
	o, err := l.resource(l.schemas.All()[0]).Namespace(namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	status, _ := o.Object["status"].(map[string]any)
	list, _ := status["conditions"].([]any)
	out := []string{fmt.Sprint(status["observedGeneration"])}
	for _, item := range list {
		c, _ := item.(map[string]any)
		out = append(out, fmt.Sprintf("%v=%v %s %s", c["type"], c["status"], optional(c["reason"]), optional(c["message"])))
	}
	return out
}

func optional(value any) string {
	text, _ := value.(string)
	return text
}

// expectStatus waits until the status of an object has these conditions.
func expectStatus(t *testing.T, l *live, namespace, name string, want ...string) {
	t.Helper()
	var got []string
	defer func() {
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the status of %s (-want +got):\n%s", name, diff)
		}
	}()
	eventually(t, "the status of "+name, func() bool {
		got = statements(t, l, namespace, name)
		return slices.Equal(got, want)
	})
}

// TestStatus: the status contains verdicts and reported conditions, and keeps the content of
// others.
func TestStatus(t *testing.T) {
	server, schemas, kind, ns, l := serveLimits(t, "status.example.com")
	p, _ := startPlane(t, server, schemas, kube.StatusOptions{})
	a := object(kind, ns, "a", "1")
	create(t, p.cache, a)
	expectStatus(t, l, ns, "a", "1", "Accepted=True Valid ")

	p.writer.Report(a.Key(), kube.Condition{Type: "Programmed", True: true, Reason: "Pushed", Message: "2 services"})
	expectStatus(t, l, ns, "a", "1", "Accepted=True Valid ", "Programmed=True Pushed 2 services")
	a.Spec = object(kind, ns, "a", "2").Spec
	update(t, p.cache, a)
	expectStatus(t, l, ns, "a", "2", "Accepted=True Valid ", "Programmed=True Pushed 2 services")

	foreign := newLive(t, restConfig(server.Config()), schemas).resource(schemas.All()[0]).Namespace(ns)
	u, err := foreign.Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	status, _ := u.Object["status"].(map[string]any)
	list, _ := status["conditions"].([]any)
	status["conditions"] = append(list, map[string]any{"type": "Foreign", "status": "True"})
	if _, err := foreign.UpdateStatus(t.Context(), u, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	// The server does not know the rule, but the cache does.
	if u, err = foreign.Get(t.Context(), "a", metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}
	u.Object["spec"] = map[string]any{"value": "bad"}
	if _, err := foreign.Update(t.Context(), u, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	expectStatus(t, l, ns, "a", "3", "Accepted=False Invalid Limit "+ns+"/a is invalid: spec.value: is bad",
		"Programmed=True Pushed 2 services", "Foreign=True  ")
	if got := value(p.cache.Get(kind, "a", ns)); got != "2" {
		t.Errorf("the value is %q, want that of the last good state", got)
	}
}

// TestStatusOfMany: one of two processes writes, and the other one takes over.
func TestStatusOfMany(t *testing.T) {
	server, schemas, kind, ns, l := serveLimits(t, "election.example.com")
	var planes []plane
	var ends []func()
	for i := range 2 {
		p, end := startPlane(t, server, schemas, kube.StatusOptions{
			// Long enough for a busy machine to keep the Lease; a process that ends releases it.
			Lease: "status", LeaseNamespace: ns, Identity: fmt.Sprint("process-", i), LeaseDuration: 10 * time.Second,
		})
		planes, ends = append(planes, p), append(ends, end)
	}
	leader := func() int { return slices.IndexFunc(planes, func(p plane) bool { return p.writer.Leading() }) }
	eventually(t, "one leads", func() bool { return leader() >= 0 })
	first := leader()
	create(t, planes[0].cache, object(kind, ns, "a", "1"))
	expectStatus(t, l, ns, "a", "1", "Accepted=True Valid ")
	if planes[1-first].writer.Leading() {
		t.Error("both lead")
	}
	ends[first]()
	create(t, planes[0].cache, object(kind, ns, "b", "1"))
	expectStatus(t, l, ns, "b", "1", "Accepted=True Valid ")
	if !planes[1-first].writer.Leading() {
		t.Error("nobody took over")
	}
}

// TestStatusRate: statuses are written at a limited rate, for any number of objects.
func TestStatusRate(t *testing.T) {
	server, schemas, kind, ns, l := serveLimits(t, "rate.example.com")
	c := newCache(t, restConfig(server.Config()), schemas, kube.Options{})
	runSynced(t, c)
	const objects, perSecond = 9, 3
	for i := range objects {
		o := object(kind, ns, fmt.Sprint("o-", i), "1")
		await(t, c, o, create(t, c, o))
	}
	writer, err := kube.NewStatusWriter(c, restConfig(server.Config()), kube.StatusOptions{Rate: perSecond})
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	runAny(t, writer.Run)
	for i := range objects {
		expectStatus(t, l, ns, fmt.Sprint("o-", i), "1", "Accepted=True Valid ")
	}
	// The burst is one second's number of writes, plus one.
	if took, least := time.Since(begin), time.Second*(objects-perSecond-1)/perSecond; took < least {
		t.Errorf("%d statuses were written in %v, want at least %v", objects, took, least)
	}
}
