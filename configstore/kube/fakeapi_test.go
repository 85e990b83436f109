// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/atomic"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/client-go/rest"

	"github.com/pilotkit/pilotkit/configstore"
)

// fakeAPI is the part of an API server that a StatusWriter uses, in memory, so that it works in a
// synctest bubble: objects and Leases, by name, with resource versions.
type fakeAPI struct {
	mu       sync.Mutex
	revision int
	stored   map[string]map[string]any // by the last part of the path
	members  []*member
}

// member is a process: its cache receives the stored objects, and its requests can be held back.
type member struct {
	name   string
	api    *fakeAPI
	cache  *Cache
	writer *StatusWriter
	events chan *object
	leave  func() // ends the process
	// intercept returns a function that is called before a response arrives.
	requests  atomic.Int32
	mu        sync.Mutex
	intercept func(*http.Request) (after func())
}

// on sets the function that is called before a request arrives, and before an event does; for an
// event the request is nil.
func (m *member) on(intercept func(*http.Request) (after func())) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.intercept = intercept
}

func nothing(*http.Request) func() { return func() {} }

const limitsPath = "/apis/bubble.example.com/v1/namespaces/default/limits/"

func bubbleKind() configstore.GroupVersionKind {
	return configstore.GroupVersionKind{Group: "bubble.example.com", Version: "v1", Kind: "Limit"}
}

// join starts a process that runs until the test ends.
func (f *fakeAPI) join(t *testing.T, name string, opts StatusOptions, prepare ...func(*member)) *member {
	t.Helper()
	m := &member{name: name, api: f, events: make(chan *object, 100_000), intercept: nothing}
	config := &rest.Config{Host: "http://apiserver", Transport: m, ContentConfig: rest.ContentConfig{ContentType: "application/json"}, QPS: -1}
	schemas := configstore.NewSchemasBuilder().MustAdd(configstore.Schema{
		GroupVersionKind: bubbleKind(), Plural: "limits", Spec: &structpb.Struct{}, Status: &structpb.Struct{},
	}).Build()
	var err error
	if m.cache, err = New(config, schemas); err != nil {
		t.Fatal(err)
	}
	m.cache.crdsListed = true // There is no watch: the cache receives the stored objects directly.
	m.cache.followed.Store(true)
	p := &publisher{scope: m.cache.kinds[0].scopes[0]}
	f.mu.Lock()
	var all []any
	for name, o := range f.stored {
		if o["kind"] == "Limit" {
			all = append(all, f.read(name))
		}
	}
	f.members = append(f.members, m)
	f.mu.Unlock()
	if err := p.Replace(all, "1"); err != nil {
		t.Fatal(err)
	}
	opts.Identity = name
	opts.Logger = slog.New(slog.DiscardHandler)
	if m.writer, err = NewStatusWriter(m.cache, config, opts); err != nil {
		t.Fatal(err)
	}
	for _, prepare := range prepare {
		prepare(m)
	}
	stop := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		for {
			select {
			case o := <-m.events:
				m.hold(nil)()
				_ = p.Update(o)
			case <-stop:
				return
			}
		}
	})
	running.Go(func() { m.cache.Run(stop) })
	running.Go(func() { m.writer.Run(stop) })
	m.leave = sync.OnceFunc(func() {
		close(stop)
		running.Wait()
	})
	t.Cleanup(m.leave)
	return m
}

func (m *member) hold(r *http.Request) (after func()) {
	m.mu.Lock()
	intercept := m.intercept
	m.mu.Unlock()
	return intercept(r)
}

// RoundTrip implements http.RoundTripper.
func (m *member) RoundTrip(r *http.Request) (*http.Response, error) {
	m.requests.Inc()
	var body map[string]any
	if r.Body != nil {
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			return nil, err
		}
	}
	after := m.hold(r)
	status, answer := m.api.serve(r, body)
	after()
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: status, Request: r, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(answer)),
	}, nil
}

func (f *fakeAPI) serve(r *http.Request, body map[string]any) (status int, answer []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	where, ofStatus := strings.CutSuffix(r.URL.Path, "/status")
	name := path.Base(where)
	o := f.stored[name]
	fail := func(code int, reason string) (int, []byte) {
		return code, fmt.Appendf(nil, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d}`, reason, code)
	}
	switch {
	case r.Method == http.MethodPost:
		name = body["metadata"].(map[string]any)["name"].(string)
		if f.stored[name] != nil {
			return fail(http.StatusConflict, "AlreadyExists")
		}
		f.put(name, body)
	case o == nil:
		return fail(http.StatusNotFound, "NotFound")
	case r.Method == http.MethodPut:
		if body["metadata"].(map[string]any)["resourceVersion"] != o["metadata"].(map[string]any)["resourceVersion"] {
			return fail(http.StatusConflict, "Conflict")
		}
		if ofStatus {
			next := clone(o)
			next["status"] = body["status"]
			body = next
		}
		f.put(name, body)
	}
	answer, _ = json.Marshal(f.stored[name])
	return http.StatusOK, answer
}

// put stores an object under a new revision, and notifies the members.
func (f *fakeAPI) put(name string, o map[string]any) {
	f.revision++
	o = clone(o)
	meta := o["metadata"].(map[string]any)
	meta["resourceVersion"] = strconv.Itoa(f.revision)
	f.stored[name] = o
	if o["kind"] != "Limit" {
		return
	}
	for _, m := range f.members {
		m.events <- f.read(name)
	}
}

func clone(o map[string]any) (out map[string]any) {
	data, _ := json.Marshal(o)
	_ = json.Unmarshal(data, &out)
	return out
}

func (f *fakeAPI) read(name string) *object {
	data, _ := json.Marshal(f.stored[name])
	o := &object{}
	if err := json.Unmarshal(data, o); err != nil {
		panic(err)
	}
	return o
}

// add stores an object with a status in JSON, or without one.
func (f *fakeAPI) add(name, status string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stored == nil {
		f.stored = map[string]map[string]any{}
	}
	o := map[string]any{
		"apiVersion": "bubble.example.com/v1", "kind": "Limit", "spec": map[string]any{},
		"metadata": map[string]any{"name": name, "namespace": "default", "uid": "u-" + name, "generation": 1},
	}
	if status != "" {
		o["status"] = json.RawMessage(status)
	}
	f.put(name, o)
}

// setStatus replaces a status.
func (f *fakeAPI) setStatus(name, status string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	o := clone(f.stored[name])
	o["status"] = json.RawMessage(status)
	f.put(name, o)
}

// message returns the message of a condition of an object.
func (f *fakeAPI) message(name, condition string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	status, _ := f.stored[name]["status"].(map[string]any)
	list, _ := status["conditions"].([]any)
	for _, c := range list {
		if c := c.(map[string]any); c["type"] == condition {
			message, _ := c["message"].(string)
			return c["status"].(string) + " " + message
		}
	}
	return ""
}

func bubbleKey(name string) configstore.ConfigKey {
	return configstore.ConfigKey{Kind: bubbleKind(), Namespace: "default", Name: name}
}

const acceptedStatus = `{"observedGeneration":1,"conditions":[{"type":"Accepted","status":"True","reason":"Valid"}]}`

// leaseOptions returns the options of members that compete for one Lease.
func leaseOptions() StatusOptions {
	return StatusOptions{Lease: "lease", LeaseNamespace: "default", LeaseDuration: 3 * time.Second, Rate: 1000}
}
