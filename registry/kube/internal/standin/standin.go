// SPDX-License-Identifier: Apache-2.0

// Package standin is a fake API server for tests that determine its responses themselves. Tests
// that depend on the behavior of an API server use a real one: see internal/test/kubetest.
package standin

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Answer is the response to a list of a kind of objects: Code and Message unless Code is zero,
// otherwise the objects at a revision.
type Answer struct {
	Code     int
	Message  string
	Revision string
	Objects  []any
}

// Serve starts a server that responds to each list of a kind, for example "services", with the
// result of answer. It does not support streamed lists; watches stay open without events. It
// returns the server's URL. The server ends with the test.
func Serve(tb testing.TB, answer func(kind string, r *http.Request) Answer) (url string) {
	tb.Helper()
	ended := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		kind, query := path.Base(r.URL.Path), r.URL.Query()
		switch {
		case query.Get("sendInitialEvents") != "":
			send(w, http.StatusUnprocessableEntity, status(http.StatusUnprocessableEntity, "no streams"))
		case query.Get("watch") != "":
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush() // an error means that the client is gone
			select {
			case <-r.Context().Done():
			case <-ended:
			}
		default:
			a := answer(kind, r)
			if a.Code != 0 {
				send(w, a.Code, status(a.Code, a.Message))
				return
			}
			if a.Objects == nil {
				a.Objects = []any{}
			}
			send(w, http.StatusOK, map[string]any{"metadata": map[string]any{"resourceVersion": a.Revision}, "items": a.Objects})
		}
	}))
	tb.Cleanup(func() {
		close(ended)
		server.CloseClientConnections()
		server.Close()
	})
	return server.URL
}

func status(code int, message string) metav1.Status {
	reason := metav1.StatusReasonUnknown
	switch code {
	case http.StatusForbidden:
		reason = metav1.StatusReasonForbidden
	case http.StatusUnprocessableEntity:
		reason = metav1.StatusReasonInvalid
	}
	return metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
		Code: int32(code), Reason: reason, Message: message,
	}
}

func send(w http.ResponseWriter, code int, body any) {
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body) // an error means that the client is gone
}
