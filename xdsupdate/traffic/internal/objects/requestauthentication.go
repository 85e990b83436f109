// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"errors"

	security "istio.io/api/security/v1beta1"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/jwtauthn"
	"github.com/pilotkit/pilotkit/internal/keyset"
)

// RequestAuthentication is a RequestAuthentication with a snapshot of its keys. It is immutable. With
// unreadable parts all requests are denied.
type RequestAuthentication struct {
	Stored
	PolicyTarget
	spec  *security.RequestAuthentication
	Rules []TokenRule
}

// TokenRule is a JWT rule of a RequestAuthentication.
type TokenRule struct {
	jwtauthn.Rule
	// Err says why the keys are missing or, if Rule.Keys is set, outdated.
	Err error
}

// ErrNoIssuer says that a rule without an issuer accepts no token, even if it has keys (S73).
var ErrNoIssuer = errors.New("requests with tokens are denied: the rule has no issuer")

// errNoPublicKey says that a rule with only private or symmetric keys accepts no token.
var errNoPublicKey = errors.New("none of its keys is public: private and symmetric ones are not sent to proxies")

// errUnusableKeys says that a rule accepts no token because Envoys would reject its keys.
var errUnusableKeys = errors.New("none of its keys is one that Envoy can use")

func newRequestAuthentication(c *configstore.Config, spec *security.RequestAuthentication, s *Settings) *RequestAuthentication {
	base := newPolicy(c)
	out := &RequestAuthentication{Stored: base, PolicyTarget: newPolicyTarget(spec, base.Unread), spec: spec}
	for _, r := range spec.GetJwtRules() {
		out.Rules = append(out.Rules, s.TokenRule(r))
	}
	return out
}

// TokenRule returns a rule with its current keys.
func (s *Settings) TokenRule(r *security.JWTRule) TokenRule {
	out := TokenRule{Rule: jwtauthn.Rule{Spec: r, Keys: keyset.WithoutPrivate(r.GetJwks())}}
	switch source, fetched := SourceOf(r); {
	case out.Keys == "" && r.GetJwks() != "":
		out.Err = errNoPublicKey
	case r.GetIssuer() == "":
		out.Keys, out.Err = "", ErrNoIssuer
	case fetched:
		keys := s.KeysFrom(source)
		out.Keys, out.Err = keys.Set, keys.Err
	}
	if out.Keys != "" && !keyset.Usable(out.Keys) {
		out.Keys, out.Err = "", errUnusableKeys
	}
	return out
}

// SourceOf returns the source of a rule's keys, unless the rule contains them.
func SourceOf(r *security.JWTRule) (s keyset.Source, fetched bool) {
	if r.GetJwks() != "" || r.GetIssuer() == "" {
		return s, false
	}
	if s.URI = r.GetJwksUri(); s.URI == "" {
		s.Issuer = r.GetIssuer()
	}
	if d := r.GetTimeout(); d.IsValid() {
		s.Timeout = d.AsDuration()
	}
	return s, true
}

// RequestAuthenticationsOf returns the objects that apply to a proxy: first the objects in its
// namespace, then those in the root namespace, each group from the oldest to the newest (S71).
func (x *Index) RequestAuthenticationsOf(p *Proxy) (out []*RequestAuthentication) {
	root := x.Settings.RootNamespace()
	namespaces := []string{p.Namespace, root}
	if p.Namespace == root {
		namespaces = namespaces[:1]
	}
	for _, namespace := range namespaces {
		for _, a := range x.RequestAuthentications.In(namespace) {
			if a.Concerns(a.Namespace, p, root) {
				out = append(out, a)
			}
		}
	}
	return out
}
