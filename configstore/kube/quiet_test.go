// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/pilotkit/pilotkit/configstore/kube"
)

// TestQuiet: client-go writes nothing to standard error, for any response of the server and any
// delay.
func TestQuiet(t *testing.T) {
	handlers := utilruntime.ErrorHandlers
	utilruntime.ErrorHandlers = handlers[:1] // See TestUnreachable: without the one that waits.
	defer func() { utilruntime.ErrorHandlers = handlers }()
	var log bytes.Buffer
	klog.SetLogger(logr.FromSlogHandler(slog.NewTextHandler(&log, nil)))
	defer klog.ClearLogger()
	const list = `{"kind":"CustomResourceDefinitionList","apiVersion":"apiextensions.k8s.io/v1","metadata":{"resourceVersion":"7"},"items":[]}`
	for name, reply := range map[string]func(*http.Request) (*http.Response, error){
		"closed": func(*http.Request) (*http.Response, error) { return nil, io.EOF },
		"failing": func(r *http.Request) (*http.Response, error) {
			return answerStatus(r, http.StatusInternalServerError, "InternalError", ""), nil
		},
		"expired": func(r *http.Request) (*http.Response, error) {
			return answerStatus(r, http.StatusGone, "Expired", ""), nil
		},
		"garbled": func(r *http.Request) (*http.Response, error) { return answer(r, http.StatusOK, "<html>"), nil },
		// client-go traces lists that take longer than ten seconds.
		"slow": func(r *http.Request) (*http.Response, error) {
			query := r.URL.Query()
			switch {
			case query.Get("sendInitialEvents") != "":
				return answerStatus(r, http.StatusUnprocessableEntity, "Invalid", ""), nil
			case query.Get("watch") != "":
				<-r.Context().Done()
				return nil, r.Context().Err()
			}
			select {
			case <-time.After(20 * time.Second):
				return answer(r, http.StatusOK, list), nil
			case <-r.Context().Done():
				return nil, r.Context().Err()
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, err := kube.New(&rest.Config{Host: "http://apiserver", Transport: roundTripper(reply)}, limits("quiet.example.com"))
				if err != nil {
					t.Fatal(err)
				}
				end := runAny(t, c.Run)
				time.Sleep(2 * time.Minute)
				end()
			})
			if log.Len() > 0 {
				t.Errorf("written: %s", log.String())
				log.Reset()
			}
		})
	}
}
