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

// requestAuthentication is a RequestAuthentication, with the keys of one moment. It is immutable.
type requestAuthentication struct {
	objectName
	policyTarget
	config *configstore.Config
	spec   *security.RequestAuthentication
	rules  []tokenRule
	// unread are the parts that cannot be read. With some all requests are denied.
	unread []configstore.Violation
}

// tokenRule is a rule of it.
type tokenRule struct {
	jwtauthn.Rule
	// err is why the keys are not those that they should be: none, or, if Rule.Keys has some, the last that could be fetched.
	err error
}

// errNoIssuer is why a rule takes no token although it may have keys (S73).
var errNoIssuer = errors.New("requests with tokens are denied: the rule has no issuer")

// errNoPublicKey is why no token of a rule can be verified that has private or symmetric keys alone.
var errNoPublicKey = errors.New("none of its keys is public: private and symmetric ones are not sent to proxies")

func newRequestAuthentication(c *configstore.Config, s *settings) *requestAuthentication {
	spec, _ := c.Spec.(*security.RequestAuthentication)
	if spec == nil {
		return nil
	}
	unread := configstore.Unread(spec)
	out := &requestAuthentication{
		objectName: objectName{c.Namespace, c.Name}, policyTarget: newPolicyTarget(spec, unread), config: c, spec: spec, unread: unread,
	}
	for _, r := range spec.GetJwtRules() {
		out.rules = append(out.rules, s.tokenRule(r))
	}
	return out
}

// tokenRule returns a rule with the keys that there are now.
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

// sourceOf returns where the keys of a rule are published, unless it has them.
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

func compareRequestAuthentications(a, b *requestAuthentication) int {
	return compareConfigs(a.config, b.config)
}

// requestAuthenticationsOf returns the objects that count for a proxy: those of its namespace, then those of the root
// namespace, the oldest first (S71).
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
