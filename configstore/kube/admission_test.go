// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/reflect/protoreflect"
	admissionv1 "k8s.io/api/admission/v1"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/kube"
)

// post sends a body to a handler.
func post(t *testing.T, h http.Handler, body io.Reader) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/validate?timeout=10s", body)
	r.Header.Set("Content-Type", "application/json; charset=utf-8")
	h.ServeHTTP(w, r)
	return w
}

// reviewOf returns the review of an object, which is JSON.
func reviewOf(operation, kind, object, more string) string {
	apiVersion, name, _ := strings.Cut(kind, " ")
	group, version, _ := strings.Cut(apiVersion, "/")
	return fmt.Sprintf(`{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
		"uid": "u-1", "operation": %q, "kind": {"group": %q, "version": %q, "kind": %q}, "name": "a", "namespace": "n", %s "object": %s}}`,
		operation, group, version, name, more, object)
}

// objectOf returns an object as JSON.
func objectOf(kind, metadata, fields string) string {
	apiVersion, name, _ := strings.Cut(kind, " ")
	return fmt.Sprintf(`{"apiVersion": %q, "kind": %q, "metadata": {%s}, %s}`, apiVersion, name, metadata, fields)
}

// responseOf returns a handler's response to a review.
func responseOf(t *testing.T, h http.Handler, body string) *admissionv1.AdmissionResponse {
	t.Helper()
	w := post(t, h, strings.NewReader(body))
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(w.Body.Bytes(), &review); err != nil || w.Code != http.StatusOK {
		t.Fatalf("status %d, body %q: %v", w.Code, w.Body, err)
	}
	if got := w.Header().Get("Content-Type"); got != "application/json" {
		t.Errorf("the content type is %q", got)
	}
	if review.APIVersion != "admission.k8s.io/v1" || review.Kind != "AdmissionReview" || review.Request != nil ||
		review.Response == nil || review.Response.UID != "u-1" {
		t.Fatalf("the answer is %s", w.Body)
	}
	return review.Response
}

const (
	limitKind  = "admission.example.com/v1 Limit"
	limitAlias = "admission.example.com/v1beta1 Limit"
	entryKind  = "networking.istio.io/v1 ServiceEntry"
	named      = `"name": "a", "namespace": "n"`
)

// TestAdmissionVerdicts: invalid objects are rejected with a text, and the others are allowed, with
// warnings.
func TestAdmissionVerdicts(t *testing.T) {
	t.Parallel()
	h := kube.NewAdmissionHandler(limits("admission.example.com").Union(istio.Schemas()))
	bad := objectOf(limitKind, named, `"spec": {"value": "bad"}`)
	const isBad = "Limit n/a is invalid: spec.value: is bad"
	for name, tt := range map[string]struct {
		body     string
		message  string // empty: allowed
		warnings []string
	}{
		"good":           {reviewOf("CREATE", limitKind, objectOf(limitKind, named, `"spec": {"value": "1"}`), ""), "", nil},
		"no spec":        {reviewOf("CREATE", limitKind, objectOf(limitKind, named, `"spec": null`), ""), "", nil},
		"bad":            {reviewOf("CREATE", limitKind, bad, ""), isBad, nil},
		"bad update":     {reviewOf("UPDATE", limitKind, bad, `"oldObject": `+bad+`,`), isBad, nil},
		"bad dry run":    {reviewOf("CREATE", limitKind, bad, `"dryRun": true,`), isBad, nil},
		"delete":         {reviewOf("DELETE", limitKind, "null", `"oldObject": `+bad+`,`), "", nil},
		"connect":        {reviewOf("CONNECT", limitKind, "null", ""), "", nil},
		"other version":  {reviewOf("CREATE", limitAlias, objectOf(limitAlias, named, `"spec": {"value": "bad"}`), ""), isBad, nil},
		"its namespace":  {reviewOf("CREATE", limitKind, objectOf(limitKind, `"name": "a"`, `"spec": {"value": "bad"}`), ""), isBad, nil},
		"generated name": {reviewOf("CREATE", limitKind, objectOf(limitKind, `"generateName": "a"`, `"spec": {"value": "bad"}`), ""), isBad, nil},
		"odd": {
			reviewOf("CREATE", limitKind, objectOf(limitKind, named, `"spec": {"value": "odd"}`), ""), "",
			[]string{"Limit n/a: spec.value: is odd"},
		},
		"unknown kind": {
			reviewOf("CREATE", "apps/v1 Deployment", objectOf("apps/v1 Deployment", named, `"spec": 1`), ""), "",
			[]string{"unknown kind apps/v1/Deployment: it is not checked"},
		},
		"unknown version": {
			reviewOf("CREATE", "networking.istio.io/v9 ServiceEntry", objectOf("networking.istio.io/v9 ServiceEntry", named, `"spec": {}`), ""), "",
			[]string{"unknown kind networking.istio.io/v9/ServiceEntry: it is not checked"},
		},
		"status": {
			reviewOf("UPDATE", limitKind, bad, `"subResource": "status",`), "", []string{isBad},
		},
		"being deleted": {
			reviewOf("UPDATE", limitKind, objectOf(limitKind, named+`, "deletionTimestamp": "2026-01-01T00:00:00Z"`, `"spec": {"value": "bad"}`), ""), "",
			[]string{isBad},
		},
		"malformed": {
			reviewOf("CREATE", entryKind, objectOf(entryKind, named, `"spec": {"hosts": "a.test", "ports": [{"number": "x"}]}`), ""),
			`ServiceEntry n/a is malformed: spec.hosts: must be a list, is "a.test"; spec.ports[0].number: must be an integer from 0 to 4294967295, is "x"`, nil,
		},
		"unknown field": {
			reviewOf("CREATE", entryKind, objectOf(entryKind, named, `"spec": {"hostz": 1, "hosts": ["a.test"],
				"ports": [{"number": 80, "name": "http", "protocol": "HTTP"}], "resolution": "DNS"}`), ""), "",
			[]string{"ServiceEntry n/a: spec.hostz: is not known, and has no effect"},
		},
		"malformed status": {
			reviewOf("CREATE", limitKind, objectOf(limitKind, named, `"spec": {}, "status": "x"`), ""), "",
			[]string{"Limit n/a: status: must be a google.protobuf.Struct: unexpected token \"x\""},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := responseOf(t, h, tt.body)
			if got.Allowed != (tt.message == "") {
				t.Errorf("allowed: %t, %v", got.Allowed, got.Result)
			}
			if !got.Allowed {
				if diff := cmp.Diff(tt.message, got.Result.Message); diff != "" {
					t.Errorf("the message differs (-want +got):\n%s", diff)
				}
				if got.Result.Code != http.StatusUnprocessableEntity || got.Result.Reason != "Invalid" || got.Result.Details.Name != "a" ||
					len(got.Result.Details.Causes) != strings.Count(tt.message, "; ")+1 {
					t.Errorf("the status is %+v", got.Result)
				}
			}
			if diff := cmp.Diff(tt.warnings, got.Warnings); diff != "" {
				t.Errorf("the warnings differ (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAdmissionRequests: a request that is not a review gets a plain text response with the reason.
func TestAdmissionRequests(t *testing.T) {
	t.Parallel()
	h := kube.NewAdmissionHandler(limits("admission.example.com"), kube.AdmissionOptions{MaxBytes: 1000})
	good := reviewOf("CREATE", limitKind, objectOf(limitKind, named, `"spec": {}`), "")
	replaced := func(old, with string) string { return strings.Replace(good, old, with, 1) }
	for name, tt := range map[string]struct {
		method, contentType, body string
		code                      int
		want                      string
	}{
		"method":       {http.MethodGet, "", "", http.StatusMethodNotAllowed, `the method is "GET", must be POST`},
		"content type": {http.MethodPost, "text/plain", good, http.StatusUnsupportedMediaType, `the content type is "text/plain", must be application/json`},
		"none":         {http.MethodPost, "", good, http.StatusUnsupportedMediaType, `the content type is "", must be application/json`},
		"size":         {http.MethodPost, "application/json", good + strings.Repeat(" ", 1000), http.StatusRequestEntityTooLarge, "the body has more than 1000 bytes"},
		"empty":        {http.MethodPost, "application/json", "", http.StatusBadRequest, "the body is not a AdmissionReview: unexpected end of JSON input"},
		"version": {
			http.MethodPost, "application/json", replaced("k8s.io/v1", "k8s.io/v1beta1"), http.StatusBadRequest,
			`the body is "AdmissionReview" of "admission.k8s.io/v1beta1", must be AdmissionReview of admission.k8s.io/v1`,
		},
		"no request": {
			http.MethodPost, "application/json", `{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}`, http.StatusBadRequest, "request is required",
		},
		"no uid":    {http.MethodPost, "application/json", replaced("u-1", ""), http.StatusBadRequest, "request.uid is required"},
		"operation": {http.MethodPost, "application/json", replaced("CREATE", "PATCH"), http.StatusBadRequest, `request.operation is "PATCH", must be CREATE, UPDATE, DELETE or CONNECT`},
		"no kind":   {http.MethodPost, "application/json", replaced(`"kind": "Limit"}`, `"kind": ""}`), http.StatusBadRequest, "request.kind: kind and version are required"},
		"no object": {http.MethodPost, "application/json", reviewOf("CREATE", limitKind, "null", ""), http.StatusBadRequest, "request.object is required"},
		"object":    {http.MethodPost, "application/json", reviewOf("CREATE", limitKind, "[]", ""), http.StatusBadRequest, "request.object is not an object: "},
		"other kind": {
			http.MethodPost, "application/json", reviewOf("CREATE", limitKind, objectOf(limitAlias, named, `"spec": {}`), ""), http.StatusBadRequest,
			`request.object is a Limit of "admission.example.com/v1beta1", request.kind says a Limit of "admission.example.com/v1"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := httptest.NewRecorder()
			r := httptest.NewRequestWithContext(t.Context(), tt.method, "/", strings.NewReader(tt.body))
			r.Header.Set("Content-Type", tt.contentType)
			h.ServeHTTP(w, r)
			if w.Code != tt.code || !strings.HasPrefix(w.Body.String(), tt.want) {
				t.Errorf("status %d, body %q; want %d, %q", w.Code, w.Body, tt.code, tt.want)
			}
		})
	}
}

// TestAdmissionBounds: responses are bounded, and each warning is one line, for any object.
func TestAdmissionBounds(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x\n", 3000)
	schema := limit("admission.example.com")
	schema.Validate = func(c configstore.Config) (warnings, violations []configstore.Violation) {
		for i := range 60 {
			warnings = append(warnings, configstore.Violation{Field: fmt.Sprintf("spec.a[%d]", i), Message: long})
		}
		if c.Name == "a" {
			violations = slices.Clone(warnings)
		}
		return warnings, violations
	}
	h := kube.NewAdmissionHandler(configstore.NewSchemasBuilder().MustAdd(schema).Build())
	for _, name := range []string{"a", "b"} {
		got := responseOf(t, h, reviewOf("CREATE", limitKind, objectOf(limitKind, `"name": "`+name+`"`, `"spec": {}`), ""))
		if got.Allowed != (name == "b") || len(got.Warnings) != 20 || got.Warnings[19] != "Limit n/"+name+": and 41 more" {
			t.Errorf("%s: allowed: %t, %d warnings, the last %q", name, got.Allowed, len(got.Warnings), got.Warnings[len(got.Warnings)-1])
		}
		for _, w := range got.Warnings {
			if len(w) > 256 || strings.Contains(w, "\n") {
				t.Errorf("a warning has %d bytes: %q", len(w), w)
			}
		}
		if !got.Allowed && (len(got.Result.Details.Causes) != 20 || len(got.Result.Message) > 100_000 ||
			!strings.HasSuffix(got.Result.Message, "; and 40 more")) {
			t.Errorf("%d causes, a message of %d bytes", len(got.Result.Details.Causes), len(got.Result.Message))
		}
	}
}

// TestAdmissionPanic: an object for which a schema panics is rejected, as by a cache.
func TestAdmissionPanic(t *testing.T) {
	t.Parallel()
	schema, _ := istio.Schemas().Find(istio.ServiceEntry)
	schema.Text = func(protoreflect.FieldDescriptor) configstore.TextRule { panic("a defect") }
	h := kube.NewAdmissionHandler(configstore.NewSchemasBuilder().MustAdd(schema).Build())
	object := objectOf(entryKind, named, `"spec": {"hosts": ["a\u0001"]}`)
	const want = "ServiceEntry n/a is invalid: decoding it ended in a panic: a defect"
	if got := responseOf(t, h, reviewOf("CREATE", entryKind, object, "")); got.Allowed || got.Result.Message != want {
		t.Errorf("allowed: %t, %v", got.Allowed, got.Result)
	}
	if got := responseOf(t, h, reviewOf("UPDATE", entryKind, object, `"subResource": "status",`)); !got.Allowed || !slices.Equal(got.Warnings, []string{want}) {
		t.Errorf("status: allowed: %t, warnings %q", got.Allowed, got.Warnings)
	}
}

// FuzzAdmission: every body gets a response, either a verdict on the review of its UID or a text
// with the error of the request.
func FuzzAdmission(f *testing.F) {
	for _, body := range []string{
		reviewOf("CREATE", limitKind, objectOf(limitKind, named, `"spec": {"value": "bad"}`), ""),
		reviewOf("UPDATE", limitAlias, objectOf(limitAlias, named, `"spec": {"value": "odd"}, "status": 1`), `"dryRun": true, "oldObject": {},`),
		reviewOf("CREATE", entryKind, objectOf(entryKind, `"generateName": "a-"`, `"spec": {"hosts": ["a"], "x": [{}]}`), `"subResource": "status",`),
		reviewOf("DELETE", entryKind, "null", ""), "", "null", "[]", `{"kind": "AdmissionReview"}`,
	} {
		f.Add(body)
	}
	h := kube.NewAdmissionHandler(limits("admission.example.com").Union(istio.Schemas()))
	f.Fuzz(func(t *testing.T, body string) {
		w := post(t, h, strings.NewReader(body))
		if w.Code == http.StatusBadRequest {
			if strings.TrimSpace(w.Body.String()) == "" {
				t.Error("nothing says what is wrong")
			}
			return
		}
		var asked, answered admissionv1.AdmissionReview
		if err := json.Unmarshal([]byte(body), &asked); err != nil {
			t.Fatalf("status %d for %v", w.Code, err)
		}
		if err := json.Unmarshal(w.Body.Bytes(), &answered); err != nil || w.Code != http.StatusOK {
			t.Fatalf("status %d, body %q: %v", w.Code, w.Body, err)
		}
		if answered.Response.UID != asked.Request.UID || answered.Response.Allowed == (answered.Response.Result != nil) {
			t.Errorf("the answer is %s", w.Body)
		}
	})
}
