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

// TestUsable: key sets that Envoy 1.40 takes, and those for which it rejects a listener.
func TestUsable(t *testing.T) {
	t.Parallel()
	const (
		x, y   = "MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4", "4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM"
		point  = `"x": "` + x + `", "y": "` + y + `"`
		n512   = "xqU4d3czC9vXIQ3_B2zi74ewsSXsHX2gpuuMnr1p_inXbUMw8URr6rDBH97Lkc43W8j7vL3lwJlBZNg5n3Z8RQ"
		ed     = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"
		broken = `{"kty": "EC", "crv": "P-256", "x": "AAAA", "y": "BBBB"}`
		whole  = `{"kty": "EC", "crv": "P-256", ` + point + `}`
	)
	for keys, want := range map[string]bool{
		whole: true, broken: false, broken + "," + whole: true, `"text",` + whole: true, `{}`: false, "": false,
		`{"kty": "EC", ` + point + `}`: true, `{"kty": "EC", "crv": "P-256", "alg": "ES256", "x": "` + x + `=", "y": "` + y + `"}`: true,
		`{"kty": "EC", "crv": "P-224", ` + point + `}`: false, `{"kty": "EC", "crv": "P-384", ` + point + `}`: false,
		`{"kty": "EC", "alg": "ES384", ` + point + `}`: false, `{"kty": "EC", "x": "` + y + `", "y": "` + y + `"}`: false,
		`{"KTY": "EC", ` + point + `}`: false, `{"kty": "EC", "alg": 5, ` + point + `}`: true,
		`{"kty": "EC", "x": "` + x + `==", "y": "` + y + `"}`: false, `{"kty": "EC", "x": "` + n512 + `", "y": "` + y + `"}`: false,
		`{"kty": "RSA", "n": "` + n512 + `", "e": "AQAB"}`: true, `{"kty": "RSA", "n": "` + n512 + `==", "e": "Aw", "alg": "PS256"}`: true,
		`{"kty": "RSA", "n": "` + n512 + `", "e": "EQ"}`: false, `{"kty": "RSA", "n": "AQAB", "e": "AQAB"}`: false,
		`{"kty": "RSA", "n": "` + strings.ReplaceAll(n512, "_", "/") + `", "e": "AQAB"}`: false,
		`{"kty": "RSA", "n": "` + n512 + `", "e": "AQAB", "alg": "HS256"}`:               false, `{"kty": "RSA", "n": "` + n512[:len(n512)-1] + `A", "e": "AQAB"}`: false,
		`{"kty": "OKP", "crv": "Ed25519", "x": "` + ed + `"}`: true, `{"kty": "OKP", "crv": "Ed25519", "x": "AAAA"}`: false,
		`{"kty": "OKP", "crv": "X25519", "x": "` + ed + `"}`: false, `{"kty": "OKP", "crv": "Ed25519", "alg": "ES256", "x": "` + ed + `"}`: false,
	} {
		if got := Usable(`{"keys": [` + keys + `]}`); got != want {
			t.Errorf("%s: %t", keys, got)
		}
	}
	if Usable(`{"keys": [`+whole+`], "keys": [`+whole+`]}`) || Usable(`{"KEYS": [`+whole+`]}`) || Usable("text") || Usable(`{"keys": {}}`) {
		t.Error("no set is usable")
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
