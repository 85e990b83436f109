// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/internal/jwtauthn"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// publishedKeys is a fetcher that has an answer for each URI, or none yet: then it waits.
type publishedKeys struct {
	mu      sync.Mutex
	answers map[string]string
	more    chan struct{} // closed when there are other answers
}

func (k *publishedKeys) publish(uri, text string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.answers[uri] = text
	close(k.more)
	k.more = make(chan struct{})
}

// Fetch implements traffic.KeyFetcher.
func (k *publishedKeys) Fetch(ctx context.Context, uri string) ([]byte, error) {
	for {
		k.mu.Lock()
		text, ok := k.answers[uri]
		more := k.more
		k.mu.Unlock()
		switch {
		case ok && text == "":
			return nil, errors.New("on fire")
		case ok:
			return []byte(text), nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

const httpEdge = `Gateway ingress/edge {"selector": {"app": "edge"}, "servers": [{"hosts": ["*"], "port": {"number": 80, "name": "http", "protocol": "HTTP"}}]}`

// nobody is in the keys that verify no token.
const nobody = "d_-aJNmzQwpD"

// messageText returns a message with what is packed into it.
func messageText(m proto.Message) string { return protojson.Format(m) }

// listenerText returns the listener of a client as text; empty: it has none.
func listenerText(state xdstest.State) string {
	r, ok := state.Resources(envoy.ListenerType)["0.0.0.0_80"]
	if !ok {
		return ""
	}
	m, err := r.Message()
	if err != nil {
		return err.Error()
	}
	return messageText(m)
}

// TestFetchedKeys: until there are keys no token is valid, and that is said; keys that come or change reach clients by a push of
// their own.
func TestFetchedKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		published := &publishedKeys{answers: make(map[string]string), more: make(chan struct{})}
		s := stage(t, traffic.Options{KeyFetcher: published}, objectsOf(t, httpEdge,
			`RequestAuthentication ingress/jwt {"jwtRules": [
				{"issuer": "a", "jwksUri": "https://a/keys", "timeout": "3600s"}, {"issuer": "b", "jwksUri": "https://b/keys"}, {"issuer": "no URL"}]}`,
		), populate())
		stop := make(chan struct{})
		var running sync.WaitGroup
		running.Go(func() { s.policies.Run(stop) })
		t.Cleanup(func() {
			close(stop)
			running.Wait()
		})
		c := s.connect(edge())
		s.must(c.Subscribe(envoy.ListenerType))
		synctest.Wait()
		if n := strings.Count(listenerText(c.State()), nobody); n != 3 || s.policies.HasSynced() {
			t.Errorf("without an answer %d of 3 issuers have keys of nobody, synced %t", n, s.policies.HasSynced())
		}
		published.publish("https://b/keys", "")
		published.publish("https://a/keys", `{"keys":[{"kty":"EC","crv":"P-256","x":"MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4","y":"4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM","kid":"one"}]}`)
		synctest.Wait()
		if l := listenerText(c.State()); strings.Count(l, nobody) != 2 || !strings.Contains(l, "one") || !s.policies.HasSynced() {
			t.Errorf("synced %t, with keys of one: %s", s.policies.HasSynced(), l)
		}
		for field, want := range map[string]string{
			"spec.jwtRules[0]": "",
			"spec.jwtRules[1]": "requests with tokens of b are denied: https://b/keys: on fire",
			"spec.jwtRules[2]": "requests with tokens of no URL are denied: there are neither keys nor a URI of keys, and the issuer is no URL to ask for them",
		} {
			if got := s.reason("jwt", field); got != want {
				t.Errorf("%s: %q, want %q", field, got, want)
			}
		}
		// Other keys come by themselves, and an object that is changed has them at once.
		published.publish("https://a/keys", `{"keys":[{"kty":"EC","crv":"P-256","x":"MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4","y":"4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM","kid":"two"}]}`)
		time.Sleep(time.Hour)
		synctest.Wait()
		if l := listenerText(c.State()); strings.Contains(l, "one") || !strings.Contains(l, "two") {
			t.Errorf("with other keys: %s", l)
		}
		s.change(objectsOf(t, `RequestAuthentication ingress/jwt {"jwtRules": [{"issuer": "a2", "jwksUri": "https://a/keys", "timeout": "3600s"}]}`))
		if l := listenerText(c.State()); strings.Contains(l, nobody) || !strings.Contains(l, "a2") {
			t.Errorf("changed: %s", l)
		}
		s.must(s.store.Delete(istio.RequestAuthentication, "jwt", "ingress", nil))
		s.applied()
		if l := listenerText(c.State()); strings.Contains(l, jwtauthn.Filter) {
			t.Errorf("without the object: %s", l)
		}
	})
}

// TestEffectsOfRequestAuthentication: what is verified is said, and what is not.
func TestEffectsOfRequestAuthentication(t *testing.T) {
	t.Parallel()
	const keys = `"jwks": "{\"keys\":[{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4\",\"y\":\"4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM\"}]}"`
	s := stage(t, traffic.Options{}, objectsOf(t, httpEdge,
		`RequestAuthentication ingress/jwt {"selector": {"matchLabels": {"app": "edge"}}, "jwtRules": [{"issuer": "a", `+keys+`}, {"issuer": "b", "jwksUri": "https://b/keys"}]}`,
		`RequestAuthentication shop/server {"selector": {"matchLabels": {"app": "cart"}}, "jwtRules": [{"issuer": "a", `+keys+`}]}`,
		`RequestAuthentication shop/waypoint {"targetRefs": [{"kind": "Service", "name": "cart"}], "jwtRules": [{"issuer": "a", `+keys+`}]}`,
		`RequestAuthentication istio-system/none {}`,
		`RequestAuthentication ingress/anybody {"jwtRules": [{`+keys+`}]}`,
		`RequestAuthentication ingress/broken {"jwtRules": [{"issuer": "a", "jwks": "{\"keys\":[{\"kty\":\"RSA\",\"n\":\"AQAB\",\"e\":\"AQAB\"}]}"}]}`,
		`RequestAuthentication billing/bad {"jwtRules": [{"issuer": "a", "fromHeaders": [{"name": "a\nb"}], `+keys+`}]}`,
	), populate())
	const verified = "requests with tokens that are not valid are refused, those of issuer "
	for name, want := range map[string]string{
		"ingress/jwt": "routers of namespace ingress with the labels app=edge: " + verified + `"a" are verified; ` +
			"routers of namespace ingress with the labels app=edge: " + verified + `"b" are verified; ` +
			"spec.jwtRules[1]: requests with tokens of b are denied: the keys were not fetched yet",
		"shop/server":       "only gateways enforce it, and no Gateway is for routers that it selects",
		"shop/waypoint":     "spec.targetRefs: policies for a Service are for waypoints, which are not configured",
		"istio-system/none": "spec.jwtRules: there are no rules, and no token is verified",
		"ingress/anybody":   "routers of namespace ingress: " + verified + `"" are verified; spec.jwtRules[0]: requests with tokens are denied: the rule has no issuer`,
		"ingress/broken":    "routers of namespace ingress: " + verified + `"a" are verified; spec.jwtRules[0]: requests with tokens of a are denied: none of its keys is one that Envoy can use`,
		"billing/bad":       "routers of namespace billing: " + verified + `"a" are verified; spec.jwtRules[0]: all requests are denied: `,
	} {
		namespace, object, _ := strings.Cut(name, "/")
		does, not := s.policies.Effects(configstore.ConfigKey{Kind: istio.RequestAuthentication, Namespace: namespace, Name: object})
		var got []string
		for _, e := range does {
			got = append(got, e.String())
		}
		for _, e := range not {
			got = append(got, strings.TrimPrefix(e.String(), "RequestAuthentication "+name+": "))
		}
		if all := strings.Join(got, "; "); all != want && (!strings.HasSuffix(want, "denied: ") || !strings.HasPrefix(all, want)) {
			t.Errorf("effects of %s:\n%s, want\n%s", name, all, want)
		}
	}
}

// TestRefusedRequestAuthentication: where a rule cannot be sent, or a client refuses the object, all requests are denied.
func TestRefusedRequestAuthentication(t *testing.T) {
	t.Parallel()
	s := stage(t, traffic.Options{}, objectsOf(t, httpEdge,
		`RequestAuthentication ingress/bad {"jwtRules": [{"issuer": "a", "jwks": "{}", "fromHeaders": [{"name": "a\nb"}]}]}`), populate())
	answer := s.ask(edge(), envoy.ListenerType)
	if l := messageText(answer.resources["0.0.0.0_80"]); !strings.Contains(l, "refused-ingress/bad") || strings.Contains(l, jwtauthn.Filter) {
		t.Errorf("a rule that cannot be sent: %s", l)
	}
	if failed := answer.failed["0.0.0.0_80"]; !strings.Contains(failed, "RequestAuthentication ingress/bad: spec.jwtRules[0]: all requests are denied") {
		t.Errorf("it is reported as %q", failed)
	}
	s.change(objectsOf(t, `RequestAuthentication ingress/bad {"jwtRules": [{"issuer": "unloved", "jwks": "{}"}]}`))
	c := xdstest.NewClient(s.conn, xdstest.ClientOptions{Node: edge(), Delta: true, Answer: func(r xdstest.Response) error {
		for _, resource := range r.Resources {
			if m, err := resource.Message(); err != nil || strings.Contains(messageText(m), "unloved") {
				return errors.Join(err, errors.New("no token of this issuer"))
			}
		}
		return nil
	}})
	s.must(c.Connect(t.Context()))
	t.Cleanup(c.Close)
	s.must(c.Subscribe(envoy.ListenerType))
	s.await(c, func(state xdstest.State) bool { return strings.Contains(listenerText(state), "left-out-ingress/bad") })
}
