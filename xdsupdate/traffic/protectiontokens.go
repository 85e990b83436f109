// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"errors"
	"fmt"

	"github.com/pilotkit/pilotkit/internal/jwtauthn"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/rbac"
)

// Prefixes of the names of RBAC policies that deny all requests of a router. The name of the
// responsible RequestAuthentication follows.
const (
	leftOutTokens = "left-out-"
	refusedTokens = "refused-"
)

// tokens adds the filter of RequestAuthentications. If one of these cannot be included, all
// requests are denied. Otherwise invalid tokens would pass, and AuthorizationPolicies would miss
// the claims of tokens.
func (b *protectionBuilder) tokens() {
	var rules []jwtauthn.Rule
	for _, a := range b.RequestAuthenticationsOf(&b.proxy.Proxy) {
		if how := b.proxy.leaves(a.Config, a); how != ads.Included {
			name := leftOutTokens
			if how < ads.Absent {
				name += a.String()
			}
			b.add(rbac.HTTPFilter, rbac.DenyAll(name))
			return
		}
		if len(a.Unread) > 0 { // Reported by Ineffective.
			b.add(rbac.HTTPFilter, rbac.DenyAll(refusedTokens+a.String()))
			return
		}
		for i, r := range a.Rules {
			if err := checkOf(rbac.HTTP)(jwtauthn.Provider(r.Rule)); err != nil {
				b.problems = append(b.problems, leftOut(a.Config, objects.Element("spec.jwtRules", i), fmt.Errorf("all requests are denied: %w", err)))
				b.add(rbac.HTTPFilter, rbac.DenyAll(refusedTokens+a.String()))
				return
			}
			if errors.Is(r.Err, objects.ErrNoIssuer) { // Keys that are not fetched yet are not an error of the object. Ineffective reports them.
				b.problems = append(b.problems, leftOut(a.Config, objects.Element("spec.jwtRules", i), r.Err))
			}
			rules = append(rules, r.Rule)
		}
	}
	config := jwtauthn.Config(rules)
	if config == nil {
		return
	}
	b.refused = checkOf(rbac.HTTP)(config)
	b.add(jwtauthn.Filter, config)
}
