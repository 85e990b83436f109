// SPDX-License-Identifier: Apache-2.0

package etcd_test

import (
	"testing"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/etcd"
	"github.com/pilotkit/pilotkit/configstore/istio"
)

// TestClosedPolicies: a policy that others have written and that cannot be read, or not all of it,
// is closed in a replica that starts then. No replica stores one of which something would be lost.
func TestClosedPolicies(t *testing.T) {
	srv, prefix := shared.get(t)
	client := newClient(t, srv.addr)
	head := "apiVersion: security.istio.io/v1\nkind: AuthorizationPolicy\nmetadata: {namespace: ns, name: "
	values := map[string]string{
		"deep": head + "deep}\nspec: {selector: {matchLabels: {app: web}}, rules: [{from: [{source: {later: [a]}}]}]}", "top": head + "top}\nspec: {later: 1, rules: [{}]}",
		"action": head + "action}\nspec: {action: LATER, rules: [{}]}", "other": head + "another}\nspec: {rules: [{}]}", "text": "{", "empty": "",
	}
	for name, value := range values {
		put(t, client, prefix+"/security.istio.io/AuthorizationPolicy/ns/"+name, value)
	}
	r := start(t, srv.addr, etcd.Options{Prefix: prefix})
	r.Drain()
	for name := range values {
		c := r.Get(istio.AuthorizationPolicy, name, "ns")
		if !configstore.IsPlaceholder(c) {
			t.Errorf("%s is %v", name, c)
			continue
		}
		again := configstore.Config{Meta: c.Meta, Spec: c.Spec}
		again.Name, again.ResourceVersion = "again", ""
		if _, err := r.Create(again); err == nil {
			t.Errorf("%s is stored without what could not be read", name)
		}
	}
	if got := len(r.Errors()); got != len(values) {
		t.Errorf("%d errors: %v", got, r.Errors())
	}
}
