// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"errors"
	"fmt"

	"github.com/pilotkit/pilotkit/internal/jwtauthn"
	"github.com/pilotkit/pilotkit/internal/rbac"
)

// The beginnings of the names of what denies all requests of a router, before the name of the RequestAuthentication because of which it does.
const (
	leftOutTokens = "left-out-"
	refusedTokens = "refused-"
)

// tokens adds the filter of RequestAuthentications. Without one of them requests would pass with tokens that it refuses, and
// with what AuthorizationPolicies want to know unknown: all are denied then.
func (b *protectionBuilder) tokens() {
	var rules []jwtauthn.Rule
	for _, a := range b.requestAuthenticationsOf(b.proxy) {
		if b.proxy.leaves(a.config, a) {
			b.add(rbac.HTTPFilter, rbac.DenyAll(leftOutTokens+a.String()))
			return
		}
		if len(a.unread) > 0 { // Ineffective says so.
			b.add(rbac.HTTPFilter, rbac.DenyAll(refusedTokens+a.String()))
			return
		}
		for i, r := range a.rules {
			if err := checkOf(rbac.HTTP)(jwtauthn.Provider(r.Rule)); err != nil {
				b.problems = append(b.problems, leftOut(a.config, element("spec.jwtRules", i), fmt.Errorf("all requests are denied: %w", err)))
				b.add(rbac.HTTPFilter, rbac.DenyAll(refusedTokens+a.String()))
				return
			}
			if errors.Is(r.err, errNoIssuer) { // Keys that could not be fetched yet are no mistake of the object: Ineffective has them.
				b.problems = append(b.problems, leftOut(a.config, element("spec.jwtRules", i), r.err))
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
