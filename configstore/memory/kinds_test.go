// SPDX-License-Identifier: Apache-2.0

package memory_test

import (
	"testing"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/memory"
)

// The kinds of these tests. Widgets have a status and an alias; nodes are
// cluster-scoped.
func widget() configstore.GroupVersionKind {
	return configstore.GroupVersionKind{Group: "test.example.com", Version: "v1", Kind: "Widget"}
}

func widgetAlias() configstore.GroupVersionKind {
	gvk := widget()
	gvk.Version = "v1alpha1"
	return gvk
}

func gadget() configstore.GroupVersionKind {
	return configstore.GroupVersionKind{Group: "test.example.com", Version: "v1", Kind: "Gadget"}
}

func node() configstore.GroupVersionKind {
	return configstore.GroupVersionKind{Group: "test.example.com", Version: "v1", Kind: "Node"}
}

// testSchemas has these kinds. A widget must not be "bad", and "odd" ones cause a
// warning.
func testSchemas() configstore.Schemas {
	return configstore.NewSchemasBuilder().
		MustAdd(configstore.Schema{
			GroupVersionKind: widget(), Aliases: []string{"v1alpha1"},
			Spec: &wrapperspb.StringValue{}, Status: &wrapperspb.StringValue{}, Validate: validate,
		}).
		MustAdd(configstore.Schema{GroupVersionKind: gadget(), Spec: &wrapperspb.StringValue{}}).
		MustAdd(configstore.Schema{GroupVersionKind: node(), ClusterScoped: true, Spec: &wrapperspb.StringValue{}}).
		Build()
}

func validate(c configstore.Config) (warnings, violations []configstore.Violation) {
	switch value(&c) {
	case "bad":
		violations = append(violations, configstore.Violation{Field: "spec", Message: `must not be "bad"`})
	case "odd":
		warnings = append(warnings, configstore.Violation{Field: "spec", Message: "is odd"})
	}
	return warnings, violations
}

func object(kind configstore.GroupVersionKind, namespace, name, value string) configstore.Config {
	return configstore.Config{
		Meta: configstore.Meta{GroupVersionKind: kind, Namespace: namespace, Name: name},
		Spec: wrapperspb.String(value),
	}
}

func value(c *configstore.Config) string {
	if c == nil {
		return "absent"
	}
	spec, _ := c.Spec.(*wrapperspb.StringValue)
	return spec.GetValue()
}

func newStore() *memory.Store {
	return memory.Make(testSchemas(), memory.Options{DetectMutations: true})
}

func create(tb testing.TB, s configstore.ConfigStore, c configstore.Config) string {
	tb.Helper()
	revision, err := s.Create(c)
	if err != nil {
		tb.Fatalf("Create(%s) = %v", c.Key().Object(), err)
	}
	return revision
}

func update(tb testing.TB, s configstore.ConfigStore, c configstore.Config) string {
	tb.Helper()
	revision, err := s.Update(c)
	if err != nil {
		tb.Fatalf("Update(%s) = %v", c.Key().Object(), err)
	}
	return revision
}

// A name is resolved by the schemas: here an alias of one kind is the version of another.
func TestAliasThatIsTaken(t *testing.T) {
	old := widgetAlias()
	schemas := configstore.NewSchemasBuilder().
		MustAdd(configstore.Schema{GroupVersionKind: old, Spec: &wrapperspb.StringValue{}}).Build().
		Union(testSchemas())
	s := memory.Make(schemas)
	create(t, s, object(old, "a", "foo", "1"))
	schema, _ := schemas.Find(old)
	want := schema.GroupVersionKind
	if got := s.Get(old, "foo", "a"); got == nil || got.GroupVersionKind != want {
		t.Errorf("Get(%s) = %v, want a %s", old, got, want)
	}
	if got := s.Get(widget(), "foo", "a"); got != nil {
		t.Errorf("Get(%s) = %v, want nil", widget(), got)
	}
}
