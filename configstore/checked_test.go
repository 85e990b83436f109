// SPDX-License-Identifier: Apache-2.0

package configstore_test

import (
	"errors"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilotkit/pilotkit/configstore"
)

// counted returns a schema that counts its validations, warns of everything, and
// refuses objects that are labelled "bad".
func counted(kind string) (configstore.Schema, *int) {
	s, calls := schema(kind, "v1beta1"), new(int)
	s.Validate = func(c configstore.Config) (warnings, violations []configstore.Violation) {
		*calls++
		if _, bad := c.Labels["bad"]; bad {
			violations = append(violations, configstore.Violation{Field: "metadata.labels", Message: "is bad"})
		}
		return []configstore.Violation{{Message: "is odd"}}, violations
	}
	return s, calls
}

func object() configstore.Config {
	return configstore.Config{
		Meta: configstore.Meta{
			GroupVersionKind: version("v1", "A"), Name: "a", Namespace: "ns",
			Labels: map[string]string{"app": "a"}, Annotations: map[string]string{"note": "a"},
		},
		Spec: &structpb.Struct{},
	}
}

// TestRecheck: evidence counts for the very object that was checked, and for nothing
// that differs from it.
func TestRecheck(t *testing.T) {
	counting, calls := counted("A")
	schemas := configstore.NewSchemasBuilder().MustAdd(counting).Build()
	tests := []struct {
		name   string
		change func(*configstore.Config)
		again  bool
	}{
		{name: "nothing", change: func(*configstore.Config) {}},
		{name: "fields that the store sets", change: func(c *configstore.Config) { c.ResourceVersion, c.Generation = "7", 3 }},
		{name: "an equal map", change: func(c *configstore.Config) { c.Labels = map[string]string{"app": "a"} }},
		{name: "version", change: func(c *configstore.Config) { c.GroupVersionKind.Version = "v1beta1" }, again: true},
		{name: "name", change: func(c *configstore.Config) { c.Name = "b" }, again: true},
		{name: "namespace", change: func(c *configstore.Config) { c.Namespace = "other" }, again: true},
		{name: "domain", change: func(c *configstore.Config) { c.Domain = "d" }, again: true},
		{name: "uid", change: func(c *configstore.Config) { c.UID = "u" }, again: true},
		{name: "labels", change: func(c *configstore.Config) { c.Labels = map[string]string{"app": "b"} }, again: true},
		{name: "annotations", change: func(c *configstore.Config) { c.Annotations = nil }, again: true},
		{name: "creation", change: func(c *configstore.Config) { c.CreationTimestamp = time.Unix(1, 0) }, again: true},
		{name: "owners", change: func(c *configstore.Config) { c.OwnerReferences = []configstore.OwnerReference{{Name: "o"}} }, again: true},
		{name: "spec", change: func(c *configstore.Config) { c.Spec = &structpb.Struct{} }, again: true},
		{name: "status", change: func(c *configstore.Config) { c.Status = &wrapperspb.StringValue{} }, again: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := object()
			checked, _, err := schemas.Check(c)
			if err != nil {
				t.Fatal(err)
			}
			tt.change(&c)
			*calls = 0
			warnings, err := schemas.Recheck(c, checked)
			if err != nil || len(warnings) != 1 {
				t.Errorf("Recheck = %v, %v, want one warning", warnings, err)
			}
			if again := *calls > 0; again != tt.again {
				t.Errorf("validated again: %v, want %v", again, tt.again)
			}
		})
	}
}

// What another schema of the same kind says is no evidence; a union has the same one.
func TestRecheckTakesOnlyItsOwnSchema(t *testing.T) {
	counting, calls := counted("A")
	own := configstore.NewSchemasBuilder().MustAdd(counting).Build()
	lax, _ := own.Find(counting.GroupVersionKind)
	lax.Validate = nil
	tests := []struct {
		name  string
		by    configstore.Schemas
		again bool
	}{
		{name: "the same", by: own},
		{name: "a union", by: configstore.Schemas{}.Union(own)},
		{name: "added again", by: configstore.NewSchemasBuilder().MustAdd(counting).Build(), again: true},
		{name: "without rules", by: configstore.NewSchemasBuilder().MustAdd(lax).Build(), again: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := object()
			checked, _, err := tt.by.Check(c)
			if err != nil {
				t.Fatal(err)
			}
			*calls = 0
			if _, err := own.Recheck(c, checked); err != nil {
				t.Fatal(err)
			}
			if again := *calls > 0; again != tt.again {
				t.Errorf("validated again: %v, want %v", again, tt.again)
			}
		})
	}
}

func TestCheckOfWhatIsNotValid(t *testing.T) {
	counting, _ := counted("A")
	schemas := configstore.NewSchemasBuilder().MustAdd(counting).Build()
	bad := object()
	bad.Labels = map[string]string{"bad": ""}
	checked, warnings, err := schemas.Check(bad)
	if checked != nil || len(warnings) != 1 || !errors.Is(err, configstore.ErrInvalid) {
		t.Errorf("Check = %v, %v, %v, want a warning and ErrInvalid", checked, warnings, err)
	}
	bad.GroupVersionKind = version("v1", "B")
	if checked, _, err := schemas.Check(bad); checked != nil || !errors.Is(err, configstore.ErrUnknownKind) {
		t.Errorf("Check = %v, %v, want ErrUnknownKind", checked, err)
	}
	if _, err := schemas.Recheck(bad, nil); !errors.Is(err, configstore.ErrUnknownKind) {
		t.Errorf("Recheck = %v, want ErrUnknownKind", err)
	}
}
