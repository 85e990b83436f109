// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"net"
	"net/http"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

// Errors of the connection to the API server, or of the client's permissions, are reported for each
// kind, and not mistaken for an empty cluster.
func TestErrors(t *testing.T) {
	server := apiserver.Server(t)
	for name, test := range map[string]struct {
		config func(t *testing.T) *rest.Config
		want   string
	}{
		"an address where nothing listens": {closedPort, "connection refused"},
		"a connection that breaks": {func(t *testing.T) *rest.Config {
			t.Helper()
			front := server.Front(t)
			front.Refuse(true)
			return restConfig(front.Config())
		}, "127.0.0.1"}, // EOF, or the connection is reset
		"an address that does not answer": {func(t *testing.T) *rest.Config {
			t.Helper()
			front := server.Front(t)
			front.Hold(true)
			return restConfig(front.Config())
		}, "deadline exceeded"},
		"another certificate authority": {func(*testing.T) *rest.Config {
			config := restConfig(server.Config())
			config.Insecure = false
			return config
		}, "failed to verify certificate"},
		"wrong credentials": {func(*testing.T) *rest.Config {
			config := restConfig(server.Config())
			config.BearerToken = "wrong"
			return config
		}, "Unauthorized"},
		"no rights": {func(*testing.T) *rest.Config { return restConfig(server.ConfigFor("nothing-allowed")) }, "forbidden"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, test.config(t))
			s.await("an error of each kind", func() bool { return len(s.kube.Errors()) == 5 })
			for _, err := range s.kube.Errors() {
				if text := err.Error(); !strings.Contains(text, test.want) || !strings.HasPrefix(text, "list "+err.Kind+": ") {
					t.Errorf("error %q, want one with %q", text, test.want)
				}
			}
			if s.kube.HasSynced() {
				t.Error("the registry has synced, though it knows nothing of the cluster")
			}
		})
	}
}

func closedPort(t *testing.T) *rest.Config {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return &rest.Config{Host: "https://" + listener.Addr().String()}
}

// The error shows although client-go has not given up on a request: the first ones
// are never answered.
func TestErrorBeforeTheAnswer(t *testing.T) {
	server := apiserver.Server(t)
	front := server.Front(t)
	config := restConfig(front.Config())
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.URL.Path != "/version" {
				<-r.Context().Done()
				return nil, r.Context().Err()
			}
			return next.RoundTrip(r)
		})
	})
	front.Refuse(true)
	s := newScene(t, config)
	s.await("an error of each kind", func() bool { return len(s.kube.Errors()) == 5 })
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// The content stays while the server is unreachable. The errors disappear when it is reachable
// again.
func TestErrorsGo(t *testing.T) {
	server := apiserver.Server(t)
	namespace := server.Namespace(t)
	front := server.Front(t)
	s := newScene(t, restConfig(front.Config()))
	s.fill(t.Context(), newClient(t, server), namespace)
	want := []string{clerk + namespace + "/sa/clerk", "10.1.0.2@"}
	s.awaitAddresses(namespace, want...)
	front.Refuse(true)
	s.await("an error of each kind", func() bool { return len(s.kube.Errors()) == 5 })
	s.awaitAddresses(namespace, want...)
	if !s.kube.HasSynced() {
		t.Error("HasSynced became false")
	}
	front.Refuse(false)
	s.await("the end of the errors", func() bool { return len(s.kube.Errors()) == 0 })
	s.awaitAddresses(namespace, want...)
}
