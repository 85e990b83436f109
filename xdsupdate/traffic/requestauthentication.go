// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"errors"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	security "istio.io/api/security/v1beta1"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/jwtauthn"
	"github.com/pilotkit/pilotkit/internal/keyset"
)

// requestAuthentication is a RequestAuthentication with a snapshot of its keys. It is immutable. With
// unreadable parts all requests are denied.
type requestAuthentication struct {
	stored
	policyTarget
	spec  *security.RequestAuthentication
	rules []tokenRule
}

// tokenRule is a JWT rule of a RequestAuthentication.
type tokenRule struct {
	jwtauthn.Rule
	// err says why the keys are missing or, if Rule.Keys is set, outdated.
	err error
}

// errNoIssuer says that a rule without an issuer accepts no token, even if it has keys (S73).
var errNoIssuer = errors.New("requests with tokens are denied: the rule has no issuer")

// errNoPublicKey says that a rule with only private or symmetric keys accepts no token.
var errNoPublicKey = errors.New("none of its keys is public: private and symmetric ones are not sent to proxies")

func newRequestAuthentication(c *configstore.Config, spec *security.RequestAuthentication, s *settings) *requestAuthentication {
	base := newPolicy(c)
	out := &requestAuthentication{stored: base, policyTarget: newPolicyTarget(spec, base.unread), spec: spec}
	for _, r := range spec.GetJwtRules() {
		out.rules = append(out.rules, s.tokenRule(r))
	}
	return out
}

// tokenRule returns a rule with its current keys.
func (s *settings) tokenRule(r *security.JWTRule) tokenRule {
	out := tokenRule{Rule: jwtauthn.Rule{Spec: r, Keys: keyset.WithoutPrivate(r.GetJwks())}}
	switch source, fetched := sourceOf(r); {
	case out.Keys == "" && r.GetJwks() != "":
		out.err = errNoPublicKey
	case r.GetIssuer() == "":
		out.Keys, out.err = "", errNoIssuer
	case fetched:
		keys := s.keys.cache.Get(source)
		out.Keys, out.err = keys.Set, keys.Err
	}
	return out
}

// sourceOf returns the source of a rule's keys, unless the rule contains them.
func sourceOf(r *security.JWTRule) (s keyset.Source, fetched bool) {
	if r.GetJwks() != "" || r.GetIssuer() == "" {
		return s, false
	}
	if s.URI = r.GetJwksUri(); s.URI == "" {
		s.Issuer = r.GetIssuer()
	}
	s.Timeout = durationOf(r.GetTimeout())
	return s, true
}

func durationOf(d *durationpb.Duration) (out time.Duration) {
	if d.IsValid() {
		out = d.AsDuration()
	}
	return out
}

// requestAuthenticationsOf returns the objects that apply to a proxy: first the objects in its
// namespace, then those in the root namespace, each group from the oldest to the newest (S71).
func (x *index) requestAuthenticationsOf(p *proxy) (out []*requestAuthentication) {
	root := x.settings.rootNamespace()
	namespaces := []string{p.namespace, root}
	if p.namespace == root {
		namespaces = namespaces[:1]
	}
	for _, namespace := range namespaces {
		for _, a := range x.requestAuthentications.in(namespace) {
			if a.concerns(a.namespace, p, root) {
				out = append(out, a)
			}
		}
	}
	return out
}
