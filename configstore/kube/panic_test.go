// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/atomic"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/client-go/rest"

	"github.com/pilotkit/pilotkit/configstore"
)

// published returns the publisher of a cache of one kind, which logs.
func published(t *testing.T, opts Options, change func(*configstore.Schema)) (*publisher, *bytes.Buffer) {
	t.Helper()
	log := &bytes.Buffer{}
	opts.Logger = slog.New(slog.NewTextHandler(log, nil))
	schema := configstore.Schema{GroupVersionKind: bubbleKind(), Plural: "limits", Spec: &structpb.Struct{}, Status: &structpb.Struct{}}
	change(&schema)
	c, err := New(&rest.Config{Host: "http://apiserver"}, configstore.NewSchemasBuilder().MustAdd(schema).Build(), opts)
	if err != nil {
		t.Fatal(err)
	}
	return &publisher{scope: c.kinds[0].scopes[0]}, log
}

func version(name, revision string) *object {
	o := &object{}
	o.Name, o.Namespace, o.ResourceVersion, o.UID, o.Generation = name, "default", revision, "u", 1
	o.Spec = []byte(`{"revision":"` + revision + `"}`)
	return o
}

// panicking is a message whose methods panic.
type panicking struct{}

func (panicking) ProtoReflect() protoreflect.Message { panic("a defect") }

// TestPanicOfDecoding: an object that makes the decoder panic keeps its last good state, and does
// not affect others.
func TestPanicOfDecoding(t *testing.T) {
	p, log := published(t, Options{}, func(*configstore.Schema) {})
	c := p.scope.kind.cache
	all := []any{version("a", "1"), version("b", "1")}
	if err := p.Replace(all, "1"); err != nil {
		t.Fatal(err)
	}
	good := p.scope.kind.schema.Spec
	p.scope.kind.schema.Spec = panicking{} // NewSpec panics
	if err := p.Update(version("a", "2")); err != nil {
		t.Fatal(err)
	}
	if got := c.Get(bubbleKind(), "a", "default"); got == nil || got.ResourceVersion != "1" {
		t.Errorf("the object is %v", got)
	}
	if errs := c.Errors(); len(errs) != 1 || !errors.Is(errs[0], configstore.ErrInvalid) || errs[0].ResourceVersion != "2" {
		t.Errorf("the errors are %v", errs)
	}
	if n := strings.Count(log.String(), "msg=panic"); n != 1 || !strings.Contains(log.String(), "stack=") {
		t.Errorf("%d panics in the log: %s", n, log)
	}
	p.scope.kind.schema.Spec = good
	if err := p.Update(version("a", "3")); err != nil || len(c.Errors()) != 0 {
		t.Errorf("%v, %v", err, c.Errors())
	}
}

// TestPanicOfNamespaces: a selection that panics changes nothing.
func TestPanicOfNamespaces(t *testing.T) {
	var broken atomic.Bool
	p, log := published(t, Options{Namespaces: func(string) bool {
		if broken.Load() {
			panic("of the host")
		}
		return true
	}}, func(*configstore.Schema) {})
	c := p.scope.kind.cache
	if err := p.Update(version("a", "1")); err != nil {
		t.Fatal(err)
	}
	broken.Store(true)
	for _, o := range []*object{version("a", "2"), version("b", "2")} {
		if err := p.Update(o); err != nil {
			t.Fatal(err)
		}
	}
	if a, b := c.Get(bubbleKind(), "a", "default"), c.Get(bubbleKind(), "b", "default"); a == nil || a.ResourceVersion != "2" || b != nil {
		t.Errorf("there are %v and %v", a, b)
	}
	if n := strings.Count(log.String(), "msg=panic"); n != 2 {
		t.Errorf("%d panics in the log: %s", n, log)
	}
}

// TestPanicOfAStatusWorker: a write that panics is retried, and its worker continues.
func TestPanicOfAStatusWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &fakeAPI{stored: map[string]map[string]any{}}
		api.add("a", "")
		var panics atomic.Int32
		api.join(t, "m", StatusOptions{Workers: 1}, func(m *member) {
			m.writer.now = func() time.Time {
				if panics.Inc() == 1 {
					panic("a defect")
				}
				return time.Now()
			}
		})
		time.Sleep(time.Minute)
		api.add("b", "")
		time.Sleep(time.Minute)
		for _, name := range []string{"a", "b"} {
			if got := api.message(name, "Accepted"); got != "True " {
				t.Errorf("the condition of %s is %q", name, got)
			}
		}
	})
}

// TestAnotherObject: the status of an object is not written to another one of its name, and a cache
// that is behind costs no requests.
func TestAnotherObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, m := leading(t)
		var open atomic.Bool
		arrive := make(chan struct{})
		var puts, gets atomic.Int32
		m.on(func(r *http.Request) func() {
			switch {
			case r == nil && !open.Load():
				<-arrive
			case r != nil && !isLease(r) && r.Method == http.MethodPut:
				puts.Inc()
			case r != nil && !isLease(r):
				gets.Inc()
			}
			return func() {}
		})
		api.mu.Lock()
		o := clone(api.stored["o"])
		o["metadata"].(map[string]any)["uid"] = "another"
		delete(o, "status")
		api.put("o", o)
		api.mu.Unlock()
		m.writer.Report(bubbleKey("o"), Condition{Type: "Host", Message: "of the former"})
		time.Sleep(time.Second)
		if puts.Load() > 0 || gets.Load() != 1 {
			t.Errorf("another object was written %d times, and read %d times", puts.Load(), gets.Load())
		}
		open.Store(true)
		close(arrive)
		time.Sleep(time.Second)
		if got := api.message("o", "Accepted"); got != "True " || puts.Load() != 1 {
			t.Errorf("the condition is %q after %d writes", got, puts.Load())
		}
	})
}

// TestCacheBehind: events that are older than the last write cost no requests.
func TestCacheBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &fakeAPI{stored: map[string]map[string]any{}}
		m := api.join(t, "a", leaseOptions())
		elected(m)
		var requests atomic.Int32
		m.on(func(r *http.Request) func() {
			if r == nil {
				time.Sleep(10 * time.Second) // The watch is slow.
			} else if !isLease(r) {
				requests.Inc()
			}
			return func() {}
		})
		api.add("o", "")
		api.setStatus("o", `{"of":"others"}`)
		time.Sleep(time.Minute)
		if n := requests.Load(); n != 2 {
			t.Errorf("there were %d requests for one write", n)
		}
	})
}
