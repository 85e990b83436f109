// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"errors"
	"fmt"

	"github.com/pilotkit/pilotkit/internal/jwtauthn"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/rbac"
)

func (a *requestAuthentication) report(f *findings) {
	f.protects(&a.policyTarget, "only gateways enforce it, and no Gateway is for routers that it selects")
	f.unread(a.unread, "all requests are denied, because the field %s")
	if len(a.unread) > 0 {
		return
	}
	if len(a.rules) == 0 {
		f.add("spec.jwtRules", "there are no rules, and no token is verified")
	} else if f.verifiesNothing(a.namespace, &a.policyTarget) {
		f.add("spec.jwtRules", "gRPC servers verify no tokens: those among the workloads take calls with any token, and without one")
	}
	for i, r := range a.rules {
		at := element("spec.jwtRules", i)
		if err := checkOf(rbac.HTTP)(jwtauthn.Provider(r.Rule)); err != nil {
			f.add(at, "all requests are denied: %s", err)
		}
	}
}

// unfetched adds findings for the keys of a RequestAuthentication that are missing or outdated.
func (f *findings) unfetched(o object) {
	a, ok := o.(*requestAuthentication)
	if !ok || len(a.unread) > 0 {
		return
	}
	for i, r := range a.rules {
		if now := f.settings.tokenRule(r.Spec); now.err != nil {
			f.add(element("spec.jwtRules", i), "%s", now.problem())
		}
	}
}

// problem describes the effect of missing or outdated keys on tokens.
func (r tokenRule) problem() error {
	switch {
	case errors.Is(r.err, errNoIssuer):
		return r.err
	case r.Keys == "":
		return fmt.Errorf("requests with tokens of %s are denied: %w", r.Spec.GetIssuer(), r.err)
	default:
		return fmt.Errorf("tokens of %s are verified by keys that were fetched before: %w", r.Spec.GetIssuer(), r.err)
	}
}

// effects returns an effect for each issuer if the object may select routers
// of some Gateway.
func (a *requestAuthentication) effects(f *findings) (out []Effect) {
	clients, ok := f.protected(a.namespace, &a.policyTarget)
	if !ok {
		return nil
	}
	for _, r := range a.rules {
		out = append(out, Effect{clients, fmt.Sprintf("requests with tokens that are not valid are refused, those of issuer %q are verified", r.Spec.GetIssuer())})
	}
	return out
}
