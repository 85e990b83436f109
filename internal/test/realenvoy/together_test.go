// SPDX-License-Identifier: Apache-2.0

package realenvoy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/manifest"
	"github.com/pilotkit/pilotkit/internal/test/envoyproxy"
)

// openGateway is a gateway with a path that everybody may call.
const openGateway = edgeGateway + `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: all, namespace: ingress}
spec:
  hosts: ["*"]
  gateways: [edge]
  http:
  - {match: [{uri: {exact: /open}}], directResponse: {status: 200}}
`

// mostSecret is how many paths nobody may call before all go.
const mostSecret = 5

// secretPath is one that nobody may call: the route to it comes with the policy that denies it.
func secretPath(i int) string { return fmt.Sprintf("/secret-%d", i) }

// secretObjects are the routes to some paths, and the policies that deny them: each of its own
// for odd numbers, one for all others, so that policies come, and change.
func secretObjects(t *testing.T, paths []string) (out []configstore.Config) {
	t.Helper()
	text := strings.TrimSuffix(openGateway[strings.LastIndex(openGateway, "---")+4:], "\n")
	var shared []string
	for i, path := range paths {
		text += fmt.Sprintf("\n  - {match: [{uri: {exact: %s}}], directResponse: {status: 200}}", path)
		if i%2 == 0 {
			shared = append(shared, path)
		}
	}
	policy := func(name string, paths ...string) {
		text += fmt.Sprintf("\n---\napiVersion: security.istio.io/v1\nkind: AuthorizationPolicy\nmetadata: {name: %s, namespace: ingress}\n"+
			"spec: {action: DENY, rules: [{to: [{operation: {paths: [%s]}}]}]}", name, strings.Join(paths, ", "))
	}
	if len(shared) > 0 {
		policy("shared", shared...)
	}
	for i, path := range paths {
		if i%2 == 1 {
			policy("p"+strconv.Itoa(i), path)
		}
	}
	out, err := manifest.ParseAll(istio.Schemas(), []byte(text), manifest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestPolicyWithItsRoute: a route and the policy that denies it are added, and removed, in one
// batch, repeatedly, and no request to it is served, while others are. A few of one batch may be: a
// thread of an Envoy that is not scheduled for longer than routes wait for it applies routes before
// it closes accepted connections.
func TestPolicyWithItsRoute(t *testing.T) {
	n, programs := 2*mostSecret+2, []envoyproxy.Program{envoyproxy.Newest(t)}
	if *switches > 0 {
		n, programs = *switches, envoyproxy.Programs(t)
	}
	for _, program := range programs {
		t.Run(program.Version, func(t *testing.T) {
			eachProtocol(t, func(t *testing.T, delta bool) {
				t.Helper()
				writeTogether(t, n, envoyproxy.Options{Program: program, Delta: delta})
			})
		})
	}
}

// togetherPlane is a control plane with openGateway, and a gateway.
func togetherPlane(t *testing.T, o envoyproxy.Options) (p *plane, proxy *envoyproxy.Proxy, url string) {
	t.Helper()
	p = startPlane(t, planeOptions{mesh: withoutMeshTLS()})
	port := strconv.Itoa(int(envoyproxy.FreePorts(t, 1)[0]))
	p.Apply(openGateway, "HTTPPORT", port)
	return p, p.readyEdge(o), "http://" + local(port)
}

func writeTogether(t *testing.T, n int, o envoyproxy.Options) {
	t.Helper()
	p, proxy, url := togetherPlane(t, o)
	s := startSecretCalls(t, url)
	var paths []string
	written, late := secretObjects(t, nil), 0
	for i := range n {
		if paths = append(paths, secretPath(i)); len(paths) > mostSecret {
			paths = nil
		}
		next := secretObjects(t, paths)
		if len(paths) > 0 {
			s.paths.Store(slices.Clone(paths))
		}
		before := s.served.Load()
		if _, err := p.Configs.Apply(difference(written, next)...); err != nil {
			t.Fatal(err)
		}
		written = next
		p.Applied()
		for _, path := range paths {
			proxy.Await(path+" is denied", func() bool {
				status, _ := getStatus(t.Context(), &http.Transport{DisableKeepAlives: true}, url+path)
				return status == http.StatusForbidden
			})
		}
		if s.served.Load() != before {
			late++
		}
	}
	s.end()
	t.Logf("%d batches, %d requests, %d to secrets were served, in %d batches", n, s.total.Load(), s.served.Load(), late)
	if late > 1 {
		t.Errorf("requests to secrets were served in %d of %d batches", late, n)
	}
	if n := s.failed.Load(); n > 0 {
		t.Errorf("%d requests to what is open have failed", n)
	}
	p.Accepted()
}

// TestPolicyOfOpenConnections: an Envoy that drains at once ends connections with the next
// answer, so that each serves one request more without a policy that came after it was made.
func TestPolicyOfOpenConnections(t *testing.T) {
	eachProtocol(t, func(t *testing.T, delta bool) {
		t.Helper()
		p, _, url := togetherPlane(t, envoyproxy.Options{Delta: delta, Args: []string{"--drain-strategy", "immediate"}})
		var kept []http.RoundTripper
		for range callers {
			kept = append(kept, newTransport(t))
		}
		everywhere := func(path string) (out []int) {
			for _, transport := range kept {
				status, err := getStatus(t.Context(), transport, url+path)
				if err != nil {
					t.Error(err)
				}
				out = append(out, status)
			}
			return out
		}
		everywhere("/open")
		if _, err := p.Configs.Apply(difference(secretObjects(t, nil), secretObjects(t, []string{secretPath(0)}))...); err != nil {
			t.Fatal(err)
		}
		p.Applied()
		everywhere("/open")
		if got, want := everywhere(secretPath(0)), slices.Repeat([]int{http.StatusForbidden}, callers); !slices.Equal(got, want) {
			t.Errorf("the second requests are answered with %d, want %d", got, want)
		}
	})
}

// secretCalls are requests to paths that nobody may call.
type secretCalls struct {
	paths atomic.Value // of strings
	// total counts requests, served counts requests to secrets with status 200, and failed counts
	// requests to open paths with another status.
	total, served, failed atomic.Int64
	end                   func()
}

// startSecretCalls lets clients call the newest and all other paths continuously, each time on a
// new connection.
func startSecretCalls(t *testing.T, url string) *secretCalls {
	t.Helper()
	s := &secretCalls{}
	s.paths.Store([]string{secretPath(0)})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for i := range callers {
		running.Go(func() {
			transport := &http.Transport{DisableKeepAlives: true}
			for n := i; ctx.Err() == nil; n++ {
				paths := s.paths.Load().([]string)
				path := paths[len(paths)-1]
				if n%4 == 0 {
					path = paths[n/4%len(paths)]
				}
				s.count(ctx, &s.served, true, transport, url+path)
				if n%8 == 0 {
					s.count(ctx, &s.failed, false, transport, url+"/open")
				}
			}
		})
	}
	s.end = sync.OnceFunc(func() { cancel(); running.Wait() })
	t.Cleanup(s.end)
	return s
}

// count makes a request, and counts whether it is answered with 200, or is not.
func (s *secretCalls) count(ctx context.Context, as *atomic.Int64, ok bool, by http.RoundTripper, url string) {
	status, _ := getStatus(ctx, by, url)
	if ctx.Err() != nil {
		return
	}
	s.total.Inc()
	if (status == http.StatusOK) == ok {
		as.Inc()
	}
}

// getStatus makes a request and returns the status of the answer.
func getStatus(ctx context.Context, by http.RoundTripper, url string) (int, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return 0, err
	}
	answer, err := by.RoundTrip(r)
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode, errors.Join(err, answer.Body.Close())
}
