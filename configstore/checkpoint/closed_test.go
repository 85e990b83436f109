// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"errors"
	"path/filepath"
	"testing"

	security "istio.io/api/security/v1"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
)

// TestClosedPolicies: policies that are closed because something of them, or all, cannot be read
// are closed in a process that starts from a checkpoint.
func TestClosedPolicies(t *testing.T) {
	schema, _ := istio.Schemas().Find(istio.AuthorizationPolicy)
	policy := func(name string, spec *security.AuthorizationPolicy) configstore.Config {
		return configstore.Config{Meta: configstore.Meta{GroupVersionKind: istio.AuthorizationPolicy, Name: name, Namespace: "ns"}, Spec: spec}
	}
	newer := policy("newer", &security.AuthorizationPolicy{Rules: []*security.Rule{{From: []*security.Rule_From{{Source: &security.Source{Namespaces: []string{"a"}}}}}}})
	configstore.MarkUnread(newer.Spec.(*security.AuthorizationPolicy).GetRules()[0].GetFrom()[0].GetSource().ProtoReflect(), "later")
	placeholder, ok := schema.Placeholder(policy("unreadable", nil), errors.New("reason"))
	if !ok {
		t.Fatal("no placeholder")
	}
	path := filepath.Join(t.TempDir(), "checkpoint")
	writer := New(newSource(t, true, newer, placeholder), path)
	writer.Drain()
	if err := writer.Save(); err != nil {
		t.Fatal(err)
	}
	reader := New(newSource(t, false), path)
	reader.Drain()
	for name, want := range map[string]bool{"newer": false, "unreadable": true} {
		c := reader.Get(istio.AuthorizationPolicy, name, "ns")
		if c == nil || len(configstore.Unread(c.Spec)) == 0 || configstore.IsPlaceholder(c) != want {
			t.Errorf("%s is %v", name, c)
		}
	}
}
