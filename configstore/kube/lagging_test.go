// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"go.uber.org/atomic"
	"k8s.io/client-go/rest"

	"github.com/pilotkit/pilotkit/configstore/kube"
)

// laggard is a proxy before several API servers. After freeze one of them receives no further
// changes: it responds to every request that does not require a newer revision. The others respond
// to the rest.
type laggard struct {
	// streams is set if the servers stream lists, as they do since Kubernetes 1.32.
	streams bool
	// forgetful makes the next watch fail because its revision is too old.
	forgetful atomic.Bool
	// complete counts the completed lists, streamed or not.
	complete atomic.Int32

	mu     sync.Mutex
	frozen map[string][]byte // by path
}

func (l *laggard) before(config *rest.Config) *rest.Config {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) { return l.answer(r, next) })
	})
	return config
}

func (l *laggard) answer(r *http.Request, next http.RoundTripper) (*http.Response, error) {
	query := r.URL.Query()
	watches, revision := query.Get("watch") != "", query.Get("resourceVersion")
	l.mu.Lock()
	frozen := l.frozen[r.URL.Path]
	l.mu.Unlock()
	switch {
	case r.Method != http.MethodGet || !strings.HasSuffix(r.URL.Path, "/limits"):
	case watches && query.Get("sendInitialEvents") != "" && !l.streams:
		return answerStatus(r, http.StatusUnprocessableEntity, "Invalid", ""), nil
	case watches && query.Get("sendInitialEvents") == "" && l.forgetful.CompareAndSwap(true, false):
		return answerStatus(r, http.StatusGone, "Expired", ""), nil
	case !watches && frozen != nil && revision == "0":
		l.complete.Inc()
		return answer(r, http.StatusOK, string(frozen)), nil
	case !watches && frozen != nil && revision != "":
		return answerStatus(r, http.StatusGatewayTimeout, "Timeout", "ResourceVersionTooLarge"), nil
	case !watches || query.Get("sendInitialEvents") != "":
		l.complete.Inc()
	}
	return next.RoundTrip(r)
}

// freeze stops the changes of one server.
func (l *laggard) freeze(t *testing.T, config *rest.Config, path string) {
	t.Helper()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, config.Host+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("list: status %d, %v", response.StatusCode, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.frozen = map[string][]byte{path: data}
}

func answer(r *http.Request, status int, body string) *http.Response {
	return &http.Response{
		StatusCode: status, Request: r, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)),
	}
}

func answerStatus(r *http.Request, code int, reason, cause string) *http.Response {
	return answer(r, code, fmt.Sprintf(
		`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d,"details":{"causes":[{"reason":%q}]}}`, reason, code, cause))
}

// TestServersThatLag: no object returns to an older state, and no deleted object reappears,
// regardless of the API server that responds.
func TestServersThatLag(t *testing.T) {
	server, schemas, kind, ns, _ := serveLimits(t, "lagging.example.com")
	writer := newCache(t, restConfig(server.Config()), schemas, kube.Options{})
	path := "/apis/lagging.example.com/v1/limits"
	for name, streams := range map[string]bool{"Streams": true, "Lists": false} {
		t.Run(name, func(t *testing.T) {
			a, b, d := object(kind, ns, "a", "1"), object(kind, ns, "b", "1"), object(kind, ns, "d", "1")
			create(t, writer, a)
			create(t, writer, b)
			l, front := &laggard{streams: streams}, server.Front(t)
			c := newCache(t, l.before(restConfig(front.Config())), schemas, kube.Options{})
			r := record(c, kind)
			runSynced(t, c)
			r.Expect(t, "add Limit "+ns+"/a", "add Limit "+ns+"/b")
			l.freeze(t, restConfig(server.Config()), path)
			update(t, writer, object(kind, ns, "a", "2"))
			if err := writer.Delete(kind, "b", ns, nil); err != nil {
				t.Fatal(err)
			}
			create(t, writer, d)
			r.Expect(t, "update Limit "+ns+"/a", "delete Limit "+ns+"/b", "add Limit "+ns+"/d")
			relisted := func(what string, again func()) {
				t.Helper()
				lists := l.complete.Load()
				again()
				eventually(t, what, func() bool { return l.complete.Load() > lists })
				a = object(kind, ns, "a", what) // a later object shows that the list was processed
				await(t, c, a, update(t, writer, a))
				r.Expect(t, "update Limit "+ns+"/a")
			}
			relisted("the objects are listed anew", func() { c.SelectNamespaces(nil) })
			relisted("a revision is too old", func() {
				l.forgetful.Store(true)
				front.Cut()
			})
			other := newCache(t, l.before(restConfig(server.Config())), schemas, kube.Options{})
			runSynced(t, other)
			if other.Get(kind, "b", ns) != nil || value(other.Get(kind, "a", ns)) != value(c.Get(kind, "a", ns)) {
				t.Errorf("another cache begins with %v", shown(other))
			}
			for _, name := range []string{"a", "d"} {
				if err := writer.Delete(kind, name, ns, nil); err != nil {
					t.Fatal(err)
				}
			}
			r.Expect(t, "delete Limit "+ns+"/a", "delete Limit "+ns+"/d")
		})
	}
}
