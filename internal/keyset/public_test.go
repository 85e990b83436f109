// SPDX-License-Identifier: Apache-2.0

package keyset

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"
)

// TestWithoutPrivate: no private and no symmetric key of a user's set is left.
func TestWithoutPrivate(t *testing.T) {
	t.Parallel()
	const public = `{"keys": [{"kty": "RSA", "n": "nn", "e": "AQAB", "x5c": ["chain"]}]}`
	for set, want := range map[string]string{
		"":       "",
		public:   public,
		"secret": "",
		`{"keys": [{"kty": "EC", "crv": "P-256", "x": "xx", "y": "yy", "d": "secret"}]}`:                                                              `{"keys":[{"kty":"EC","crv":"P-256","x":"xx","y":"yy"}]}`,
		`{"keys": [{"kty": "RSA", "n": "nn", "e": "AQAB", "p": "secret", "q": "secret", "dp": "secret", "dq": "secret", "qi": "secret", "oth": []}]}`: `{"keys":[{"kty":"RSA","n":"nn","e":"AQAB"}]}`,
		`{"keys": [{"kty": "oct", "k": "secret"}]}`:                                                                                                   "",
		`{"keys": [{"kty": "oct", "k": "secret"}, {"kty": "RSA", "n": "nn", "e": "AQAB", "D": "secret"}]}`:                                            `{"keys":[{"kty":"RSA","n":"nn","e":"AQAB"}]}`,
	} {
		if got := WithoutPrivate(set); got != want {
			t.Errorf("of %s is left %s, want %s", set, got, want)
		}
	}
}

// TestShownSources: the shown form of a URI contains neither a password nor a token.
func TestShownSources(t *testing.T) {
	t.Parallel()
	for _, uri := range []string{"https://u:secret@x/keys", "https://x/keys?token=secret", "https://u:secret@x/%zz?a=secret", "https://x/?secret#?secret"} {
		s := Source{URI: uri}
		_, err := s.fetch(context.Background(), func(context.Context, string) ([]byte, error) {
			return nil, &url.Error{Op: "Get", URL: uri, Err: errors.New("it is away")}
		}, 10)
		if err == nil || !strings.Contains(err.Error(), "it is away") {
			t.Errorf("%s: %v", uri, err)
		}
		if text := s.String() + err.Error(); strings.Contains(text, "secret") {
			t.Errorf("of %s is said %s", uri, text)
		}
	}
}
