// SPDX-License-Identifier: Apache-2.0

package kubetest_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pilotkit/pilotkit/internal/test/kubetest"
)

var apiserver kubetest.Shared

func TestMain(m *testing.M) { apiserver.Main(m) }

// answer is an object, a list, an error, or an event of a watch.
type answer struct {
	Metadata struct {
		Name, UID       string
		ResourceVersion string
	}
	Code       int
	GitVersion string
	Resources  []struct{ Name string }
	Object     *answer
}

// call sends a request, and demands an answer with a status.
func call(t *testing.T, config kubetest.Config, want int, method, path, body string) (a answer) {
	t.Helper()
	var sent []byte
	if body != "" {
		sent = []byte(body)
	}
	status, data, err := config.Call(t.Context(), method, path, sent)
	if err != nil || status != want {
		t.Fatalf("%s %s = %d, %v, want %d: %s", method, path, status, err, want, data)
	}
	if err := json.Unmarshal(data, &a); err != nil {
		t.Fatal(err)
	}
	return a
}

// expectSilence demands that a request has no answer within a tenth of a second.
func expectSilence(t *testing.T, config kubetest.Config, path, why string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if status, _, err := config.Call(ctx, http.MethodGet, path, nil); err == nil {
		t.Errorf("GET %s has the answer %d from a server that %s", path, status, why)
	}
}

// watch begins a watch, which ends with the test.
func watch(t *testing.T, config kubetest.Config, path string) *http.Response {
	t.Helper()
	response, err := config.Send(t.Context(), http.MethodGet, path, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { response.Body.Close() })
	return response
}

// maps is the collection of the ConfigMaps of a namespace.
func maps(namespace string) string { return "/api/v1/namespaces/" + namespace + "/configmaps" }

func configMap(name, resourceVersion string) string {
	return `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "` + name + `", "resourceVersion": "` + resourceVersion + `"}}`
}

func TestConflict(t *testing.T) {
	s := apiserver.Server(t)
	collection := maps(s.Namespace(t))
	created := call(t, s.Config(), http.StatusCreated, http.MethodPost, collection, configMap("a", ""))
	changed := strings.Replace(configMap("a", created.Metadata.ResourceVersion), "{", `{"data": {"key": "1"}, `, 1)
	call(t, s.Config(), http.StatusOK, http.MethodPut, collection+"/a", changed)
	call(t, s.Config(), http.StatusConflict, http.MethodPut, collection+"/a", changed)
}

func TestVersion(t *testing.T) {
	version := call(t, apiserver.Server(t).Config(), http.StatusOK, http.MethodGet, "/version", "")
	if version.GitVersion != kubetest.Version {
		t.Fatalf("the server is %s, want %s", version.GitVersion, kubetest.Version)
	}
}

// TestRestart: a server that was killed has its data when it is started again, and
// a watch from before is too old.
func TestRestart(t *testing.T) {
	s := kubetest.Start(t)
	collection := maps("default")
	first := call(t, s.Config(), http.StatusCreated, http.MethodPost, collection, configMap("a", ""))
	call(t, s.Config(), http.StatusCreated, http.MethodPost, collection, configMap("b", ""))
	s.Stop()
	expectSilence(t, s.Config(), collection+"/a", "is stopped")
	s.Restart(t)
	got := call(t, s.Config(), http.StatusOK, http.MethodGet, collection+"/a", "")
	if got.Metadata.UID != first.Metadata.UID {
		t.Fatalf("after the restart: UID %s; want the object with the UID %s", got.Metadata.UID, first.Metadata.UID)
	}
	response := watch(t, s.Config(), collection+"?watch=1&resourceVersion="+first.Metadata.ResourceVersion)
	code := response.StatusCode
	if code == http.StatusOK {
		var event answer
		if err := json.NewDecoder(response.Body).Decode(&event); err != nil {
			t.Fatal(err)
		}
		code = event.Object.Code
	}
	if code != http.StatusGone {
		t.Errorf("watching from before the restart = %d, want too old", code)
	}
}

func TestCRDs(t *testing.T) {
	s := apiserver.Server(t)
	for range 2 { // the second finds it
		s.ApplyCRDs(t, []byte(limits))
	}
	served := call(t, s.Config(), http.StatusOK, http.MethodGet, "/apis/test.example.com/v1", "")
	if len(served.Resources) == 0 {
		t.Fatal("test.example.com/v1 has no resources")
	}
	s.DeleteCRD(t, "limits.test.example.com")
}

const limits = `# A comment is no document.
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: limits.test.example.com}
spec:
  group: test.example.com
  names: {kind: Limit, plural: limits}
  scope: Namespaced
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
---
`

func TestConfigFor(t *testing.T) {
	config := apiserver.Server(t).ConfigFor("somebody")
	call(t, config, http.StatusForbidden, http.MethodGet, maps("default"), "")
	call(t, config, http.StatusOK, http.MethodGet, "/version", "")
}

func TestFront(t *testing.T) {
	s := apiserver.Server(t)
	f := s.Front(t)
	collection := maps(s.Namespace(t))
	expectList := func() {
		t.Helper()
		call(t, f.Config(), http.StatusOK, http.MethodGet, collection, "")
	}
	events := watch(t, f.Config(), collection+"?watch=1")

	f.Hold(true)
	expectSilence(t, f.Config(), collection, "is held up")
	f.Hold(false)
	const delay = 50 * time.Millisecond
	f.Delay(delay)
	begin := time.Now()
	if expectList(); time.Since(begin) < delay {
		t.Errorf("a list took %v; want at least %v", time.Since(begin), delay)
	}
	f.Delay(0)

	f.Refuse(true)
	if _, err := io.ReadAll(events.Body); err == nil || errors.Is(err, context.Canceled) {
		t.Errorf("the watch ended with %v, want that it was cut", err)
	}
	expectSilence(t, f.Config(), collection, "refuses")
	f.Refuse(false)
	expectList()
	f.Cut()
	expectList()
}
