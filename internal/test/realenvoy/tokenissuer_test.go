// SPDX-License-Identifier: Apache-2.0

package realenvoy

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pilotkit/pilotkit/internal/test/routesim"
)

// tokenIssuer is a server that issues tokens, and publishes the keys that verify them. Its name is its URL.
type tokenIssuer struct {
	t   *testing.T
	url string
	// key signs.
	key *routesim.Key

	mu        sync.Mutex
	published []*routesim.Key
	// away lets all requests fail, and counts them in failures.
	away     bool
	failures int
}

// startTokenIssuer runs an issuer until the test ends.
func startTokenIssuer(t *testing.T) *tokenIssuer {
	t.Helper()
	i := &tokenIssuer{t: t, key: routesim.NewKey("k0")}
	i.published = []*routesim.Key{i.key}
	server := httptest.NewServer(http.HandlerFunc(i.serve))
	t.Cleanup(server.Close)
	i.url = server.URL
	return i
}

// serve answers with the keys, and with where they are.
func (i *tokenIssuer) serve(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	away, keys := i.away, i.published
	if away {
		i.failures++
	}
	i.mu.Unlock()
	switch {
	case away:
		panic(http.ErrAbortHandler) // the connection ends
	case r.URL.Path == "/.well-known/openid-configuration":
		_, _ = fmt.Fprintf(w, `{"issuer": %q, "jwks_uri": %q}`, i.url, i.url+"/keys")
	case r.URL.Path == "/keys":
		_, _ = w.Write([]byte(routesim.KeySet(keys...)))
	default:
		http.NotFound(w, r)
	}
}

// publish puts keys in the place of those before.
func (i *tokenIssuer) publish(keys ...*routesim.Key) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.published = keys
}

// leave has the issuer answer nobody any more, or again.
func (i *tokenIssuer) leave(away bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.away, i.failures = away, 0
}

// missed returns how often the issuer has not answered since it left.
func (i *tokenIssuer) missed() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.failures
}

// claims returns the claims of a token of the issuer that is valid for an hour, with others added
// or replaced.
func (i *tokenIssuer) claims(more map[string]any) map[string]any {
	out := map[string]any{"iss": i.url, "sub": "alice", "exp": time.Now().Add(time.Hour).Unix()}
	maps.Copy(out, more)
	return out
}

// token returns a token of the issuer.
func (i *tokenIssuer) token(more map[string]any) string { return i.key.Sign(i.claims(more)) }

// unsigned returns a token that declares itself unsigned.
func (i *tokenIssuer) unsigned() string {
	return routesim.TokenPart(map[string]string{"alg": "none"}) + "." + routesim.TokenPart(i.claims(nil)) + "."
}

// altered returns a token with claims that were changed after signing.
func (i *tokenIssuer) altered() string {
	parts := strings.Split(i.token(nil), ".")
	return parts[0] + "." + routesim.TokenPart(i.claims(map[string]any{"role": "admin"})) + "." + parts[2]
}
