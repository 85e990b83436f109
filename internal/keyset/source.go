// SPDX-License-Identifier: Apache-2.0

package keyset

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/pilotkit/pilotkit/internal/redact"
)

// Source is the location of a published key set.
type Source struct {
	// URI is the URI of the set. If empty, the URI is in the OpenID configuration of the issuer.
	URI, Issuer string
	// Timeout is the timeout of a fetch. Default, for values that are not positive: DefaultTimeout.
	Timeout time.Duration
}

// DefaultTimeout is the timeout of a Source without one (Istio 1.30).
const DefaultTimeout = 5 * time.Second

// discoveryPath is the path of an issuer's configuration (OpenID Connect Discovery 1.0, section 4).
const discoveryPath = "/.well-known/openid-configuration"

// fetch returns the public keys of a source. No response may exceed maxBytes.
func (s Source) fetch(ctx context.Context, fetch Fetch, maxBytes int) (string, error) {
	timeout := s.Timeout
	if timeout <= 0 {
		timeout = DefaultTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	get := func(uri string) ([]byte, error) {
		data, err := fetch(ctx, uri)
		if failed, ok := errors.AsType[*url.Error](err); ok { // It contains the URI.
			err = failed.Err
		}
		if err == nil && len(data) > maxBytes {
			err = fmt.Errorf("the answer has more than %d bytes", maxBytes)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", Shown(uri), err)
		}
		return data, nil
	}
	uri, err := s.keysURI(get)
	if err != nil {
		return "", err
	}
	data, err := get(uri)
	if err != nil {
		return "", err
	}
	keys, err := public(data)
	if err != nil {
		return "", fmt.Errorf("%s: %w", Shown(uri), err)
	}
	return keys, nil
}

// String returns the URI of the set, or its issuer, in the form of Shown.
func (s Source) String() string {
	if s.URI != "" {
		return Shown(s.URI)
	}
	return Shown(s.Issuer)
}

// Shown returns a URI for errors, logs and pages, without the password and the query, which may
// contain a token.
func Shown(uri string) string {
	before, _, asks := strings.Cut(uri, "?")
	if u, err := url.Parse(before); err != nil {
		before = redact.Mark
	} else if u.User != nil {
		before = u.Redacted()
	}
	if asks {
		before += "?" + redact.Mark
	}
	return before
}

// keysURI returns the URI of the set.
func (s Source) keysURI(get func(uri string) ([]byte, error)) (string, error) {
	if s.URI != "" {
		return s.URI, nil
	}
	if u, err := url.Parse(s.Issuer); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return "", errors.New("there are neither keys nor a URI of keys, and the issuer is no URL to ask for them")
	}
	at := strings.TrimSuffix(s.Issuer, "/") + discoveryPath
	data, err := get(at)
	if err != nil {
		return "", err
	}
	var configuration struct {
		JWKSURI string `json:"jwks_uri"`
	}
	if err := json.Unmarshal(data, &configuration); err != nil {
		return "", fmt.Errorf("%s: it is not an OpenID configuration: %w", Shown(at), err)
	}
	if configuration.JWKSURI == "" {
		return "", fmt.Errorf("%s: it names no jwks_uri", Shown(at))
	}
	return configuration.JWKSURI, nil
}
