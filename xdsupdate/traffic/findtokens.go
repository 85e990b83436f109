// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"errors"
	"fmt"

	"github.com/pilotkit/pilotkit/internal/jwtauthn"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/rbac"
)

func (f *findings) requestAuthentication(a *objects.RequestAuthentication) func() []Effect {
	effects := func() []Effect { return f.effectsOfTokens(a) }
	f.protects(&a.PolicyTarget, "only gateways enforce it, and no Gateway is for routers that it selects")
	f.unread(a.Unread, "all requests are denied, because the field %s")
	if len(a.Unread) > 0 {
		return effects
	}
	if len(a.Rules) == 0 {
		f.add("spec.jwtRules", "there are no rules, and no token is verified")
	} else if f.verifiesNothing(a.Namespace, &a.PolicyTarget) {
		f.add("spec.jwtRules", "gRPC servers verify no tokens: those among the workloads take calls with any token, and without one")
	}
	for i, r := range a.Rules {
		at := objects.Element("spec.jwtRules", i)
		if err := checkOf(rbac.HTTP)(jwtauthn.Provider(r.Rule)); err != nil {
			f.add(at, "all requests are denied: %s", err)
		}
	}
	return effects
}

// unfetched adds findings for the keys of a RequestAuthentication that are missing or outdated.
func (f *findings) unfetched(o objects.Object) {
	a, ok := o.(*objects.RequestAuthentication)
	if !ok || len(a.Unread) > 0 {
		return
	}
	for i, r := range a.Rules {
		if now := f.settings.TokenRule(r.Spec); now.Err != nil {
			f.add(objects.Element("spec.jwtRules", i), "%s", tokenProblem(now))
		}
	}
}

// tokenProblem describes the effect of missing or outdated keys on tokens.
func tokenProblem(r objects.TokenRule) error {
	switch {
	case errors.Is(r.Err, objects.ErrNoIssuer):
		return r.Err
	case r.Keys == "":
		return fmt.Errorf("requests with tokens of %s are denied: %w", r.Spec.GetIssuer(), r.Err)
	default:
		return fmt.Errorf("tokens of %s are verified by keys that were fetched before: %w", r.Spec.GetIssuer(), r.Err)
	}
}

// effectsOfTokens returns an effect for each issuer if the object may select routers of some Gateway.
func (f *findings) effectsOfTokens(a *objects.RequestAuthentication) (out []Effect) {
	clients, ok := f.protected(a.Namespace, &a.PolicyTarget)
	if !ok {
		return nil
	}
	for _, r := range a.Rules {
		out = append(out, Effect{clients, fmt.Sprintf("requests with tokens that are not valid are refused, those of issuer %q are verified", r.Spec.GetIssuer())})
	}
	return out
}
