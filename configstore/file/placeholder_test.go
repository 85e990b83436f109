// SPDX-License-Identifier: Apache-2.0

package file_test

import (
	"fmt"
	"testing"

	security "istio.io/api/security/v1beta1"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/file"
	"github.com/pilotkit/pilotkit/configstore/istio"
)

// policy is an AuthorizationPolicy with a spec.
func policy(spec string) string {
	return "apiVersion: security.istio.io/v1\nkind: AuthorizationPolicy\nmetadata: {name: p, namespace: ns}\nspec: " + spec + "\n"
}

// TestPlaceholders: a policy that cannot be read is closed in a process that has no good state of
// it, for what its selector says, or for its namespace. With a good state that stays.
func TestPlaceholders(t *testing.T) {
	for spec, want := range map[string]string{
		`{selector: {matchLabels: {app: web}}, rules: [{whenever: [a]}]}`:                                   "ALLOW map[app:web] 0 rules",
		`{selector: {matchLabels: {app: web}}, rules: [{from: [{source: {ipBlocks: [x]}}]}]}`:               "ALLOW map[app:web] 0 rules",
		`{action: DENY, selector: {matchLabels: {app: web}}, rules: [{from: [{source: {ipBlocks: [x]}}]}]}`: "DENY map[app:web] 1 rules",
		`{action: MAYBE, rules: [{}]}`:                       "DENY map[] 1 rules",
		`{selector: {matchLabels: [app]}, rules: [{}]}`:      "ALLOW map[] 0 rules",
		`{selector: {matchLabels: {app: "*"}}, rules: [{}]}`: "DENY map[] 1 rules",
		`{selector: {matchExpressions: []}, rules: [{}]}`:    "ALLOW map[] 0 rules",
		"{rules: [{}]\n": "DENY map[] 1 rules",
		`"a text"`:       "DENY map[] 1 rules",
		`{selector: {matchLabels: {app: web}}, selector: {}, rules: [{}]}`: "ALLOW map[] 0 rules",
	} {
		t.Run(spec, func(t *testing.T) {
			f := newFixture(t, file.Options{})
			f.write("a.yaml", policy(spec))
			f.reload()
			c := f.store.Get(istio.AuthorizationPolicy, "p", "ns")
			if !configstore.IsPlaceholder(c) {
				t.Fatalf("the store has %v", c)
			}
			p := c.Spec.(*security.AuthorizationPolicy)
			if got := fmt.Sprintf("%v %v %d rules", p.GetAction(), p.GetSelector().GetMatchLabels(), len(p.GetRules())); got != want {
				t.Errorf("it is %s, want %s", got, want)
			}
			if len(f.errors()) != 1 {
				t.Errorf("errors: %q", f.errors())
			}
			const good = "{selector: {matchLabels: {app: good}}, rules: [{}]}"
			f.write("a.yaml", policy(good))
			f.reload()
			f.write("a.yaml", policy(spec))
			f.reload()
			if c := f.store.Get(istio.AuthorizationPolicy, "p", "ns"); configstore.IsPlaceholder(c) || len(c.Spec.(*security.AuthorizationPolicy).GetRules()) != 1 {
				t.Errorf("the good state has gone: %v", c)
			}
			f.remove("a.yaml")
			f.reload()
			if c := f.store.Get(istio.AuthorizationPolicy, "p", "ns"); c != nil {
				t.Errorf("it has been deleted, and there is %v", c)
			}
		})
	}
}
