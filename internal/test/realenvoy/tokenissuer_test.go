// SPDX-License-Identifier: Apache-2.0

package realenvoy

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// tokenIssuer is a server that issues tokens, and publishes the keys that verify them. Its name is its URL.
type tokenIssuer struct {
	t   *testing.T
	url string
	// key signs.
	key *signingKey

	mu        sync.Mutex
	published []*signingKey
	// away lets all requests fail, and counts them in failures.
	away     bool
	failures int
}

// signingKey is a key of an issuer.
type signingKey struct {
	*ecdsa.PrivateKey
	id string
}

func newSigningKey(tb testing.TB, id string) *signingKey {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	return &signingKey{key, id}
}

// public is the key as others know it (RFC 7517).
func (k *signingKey) public(tb testing.TB) map[string]string {
	tb.Helper()
	point, err := k.PublicKey.Bytes()
	if err != nil {
		tb.Fatal(err)
	}
	return map[string]string{"kty": "EC", "crv": "P-256", "alg": "ES256", "kid": k.id, "x": encode(point[1:33]), "y": encode(point[33:])}
}

func encode(data []byte) string { return base64.RawURLEncoding.EncodeToString(data) }

// encodeJSON is a part of a token.
func encodeJSON(tb testing.TB, v any) string {
	tb.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		tb.Fatal(err)
	}
	return encode(data)
}

// sign returns a token (RFC 7515, RFC 7519).
func (k *signingKey) sign(tb testing.TB, claims map[string]any) string {
	tb.Helper()
	text := encodeJSON(tb, map[string]string{"alg": "ES256", "typ": "JWT", "kid": k.id}) + "." + encodeJSON(tb, claims)
	hash := sha256.Sum256([]byte(text))
	r, s, err := ecdsa.Sign(rand.Reader, k.PrivateKey, hash[:])
	if err != nil {
		tb.Fatal(err)
	}
	return text + "." + encode(append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...))
}

// startTokenIssuer runs an issuer until the test ends.
func startTokenIssuer(t *testing.T) *tokenIssuer {
	t.Helper()
	i := &tokenIssuer{t: t, key: newSigningKey(t, "k0")}
	i.published = []*signingKey{i.key}
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
		_, _ = w.Write([]byte(i.set(keys)))
	default:
		http.NotFound(w, r)
	}
}

// set is a JSON Web Key Set.
func (i *tokenIssuer) set(keys []*signingKey) string {
	list := make([]map[string]string, 0, len(keys))
	for _, k := range keys {
		list = append(list, k.public(i.t))
	}
	data, err := json.Marshal(map[string]any{"keys": list})
	if err != nil {
		i.t.Error(err)
	}
	return string(data)
}

// publish puts keys in the place of those before.
func (i *tokenIssuer) publish(keys ...*signingKey) {
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
func (i *tokenIssuer) token(more map[string]any) string { return i.key.sign(i.t, i.claims(more)) }

// unsigned returns a token that declares itself unsigned.
func (i *tokenIssuer) unsigned() string {
	return encodeJSON(i.t, map[string]string{"alg": "none"}) + "." + encodeJSON(i.t, i.claims(nil)) + "."
}

// altered returns a token with claims that were changed after signing.
func (i *tokenIssuer) altered() string {
	parts := strings.Split(i.token(nil), ".")
	return parts[0] + "." + encodeJSON(i.t, i.claims(map[string]any{"role": "admin"})) + "." + parts[2]
}
