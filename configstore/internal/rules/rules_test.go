// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"errors"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/internal/rules"
)

// TestPossible: which operation a mutation is, and why it is not possible.
func TestPossible(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		op      configstore.Op
		exists  bool
		version string
		decided configstore.Op
		err     error
	}{
		{op: configstore.OpCreate, decided: configstore.OpCreate},
		{op: configstore.OpCreate, version: "other", decided: configstore.OpCreate},
		{op: configstore.OpCreate, exists: true, decided: configstore.OpCreate, err: configstore.ErrAlreadyExists},
		{op: configstore.OpUpdate, decided: configstore.OpUpdate, err: configstore.ErrNotFound},
		{op: configstore.OpUpdate, exists: true, decided: configstore.OpUpdate},
		{op: configstore.OpUpdate, exists: true, version: "stored", decided: configstore.OpUpdate},
		{op: configstore.OpUpdate, exists: true, version: "other", decided: configstore.OpUpdate, err: configstore.ErrConflict},
		{op: configstore.OpUpdateStatus, exists: true, version: "other", decided: configstore.OpUpdateStatus, err: configstore.ErrConflict},
		{op: configstore.OpDelete, version: "other", decided: configstore.OpDelete, err: configstore.ErrNotFound},
		{op: configstore.OpDelete, exists: true, version: "other", decided: configstore.OpDelete, err: configstore.ErrConflict},
		{op: configstore.OpUpsert, decided: configstore.OpCreate},
		{op: configstore.OpUpsert, exists: true, decided: configstore.OpUpdate},
		{op: configstore.OpUpsert, version: "other", decided: configstore.OpUpdate, err: configstore.ErrNotFound},
	} {
		op := rules.Decide(test.op, test.exists, test.version != "")
		err := rules.Check(op, test.exists, test.version != "", test.version, "stored")
		if op != test.decided || !errors.Is(err, test.err) {
			t.Errorf("%v, exists %v, version %q: %v, %v, want %v, %v", test.op, test.exists, test.version, op, err, test.decided, test.err)
		}
	}
}

// TestError: each error names the verb and the object, once.
func TestError(t *testing.T) {
	t.Parallel()
	key := configstore.ConfigKey{Kind: configstore.GroupVersionKind{Version: "v1", Kind: "Limit"}, Namespace: "default", Name: "a"}
	for want, err := range map[string]error{
		"update Limit default/a: " + configstore.ErrNotFound.Error(): configstore.ErrNotFound,
		"update: Limit default/a is invalid: spec: is required": &configstore.ValidationError{
			Key: key, Violations: []configstore.Violation{{Field: "spec", Message: "is required"}},
		},
	} {
		if got := rules.Error(configstore.OpUpdate, key, err); got.Error() != want || !errors.Is(got, err) {
			t.Errorf("%v, want %s", got, want)
		}
	}
}

// TestValidate: an update of a status is checked without the spec, an unknown operation is invalid.
func TestValidate(t *testing.T) {
	t.Parallel()
	schema := configstore.Schema{
		GroupVersionKind: configstore.GroupVersionKind{Version: "v1", Kind: "Limit"}, Spec: &structpb.Value{}, Status: &structpb.Struct{},
		Validate: func(configstore.Config) (_, _ []configstore.Violation) { panic("the rules are not for a status") },
	}
	config := configstore.Config{Meta: configstore.Meta{GroupVersionKind: schema.GroupVersionKind, Namespace: "default", Name: "a"}}
	wrong := config
	wrong.Status = &structpb.Value{}
	for _, test := range []struct {
		op     configstore.Op
		config configstore.Config
		want   error
	}{
		{configstore.OpUpdateStatus, config, nil},
		{configstore.OpUpdateStatus, wrong, configstore.ErrInvalid},
		{configstore.OpDelete, config, nil},
		{0, config, configstore.ErrInvalid},
	} {
		if err := rules.Validate(test.op, &test.config, &schema); !errors.Is(err, test.want) || rules.WritesSpec(test.op) {
			t.Errorf("%v: %v, want %v", test.op, err, test.want)
		}
	}
}

func TestWritesSpec(t *testing.T) {
	t.Parallel()
	for _, op := range []configstore.Op{configstore.OpCreate, configstore.OpUpdate, configstore.OpUpsert} {
		if !rules.WritesSpec(op) {
			t.Errorf("%v does not", op)
		}
	}
}

// TestCompare: each field that a writer sets is a difference, and only the spec is one of the spec.
func TestCompare(t *testing.T) {
	t.Parallel()
	schema := configstore.Schema{Spec: &structpb.Value{}}
	old := configstore.Config{Meta: configstore.Meta{ResourceVersion: "1", Generation: 1}, Spec: structpb.NewNumberValue(1)}
	old.CreationTimestamp = old.CreationTimestamp.AddDate(1, 0, 0)
	for name, test := range map[string]struct {
		change func(*configstore.Config)
		want   rules.Difference
	}{
		"nothing":         {func(*configstore.Config) {}, rules.Difference{}},
		"the store's":     {func(c *configstore.Config) { c.ResourceVersion, c.Generation = "", 0 }, rules.Difference{}},
		"no time":         {func(c *configstore.Config) { c.CreationTimestamp = configstore.Meta{}.CreationTimestamp }, rules.Difference{}},
		"another time":    {func(c *configstore.Config) { c.CreationTimestamp = c.CreationTimestamp.AddDate(1, 0, 0) }, rules.Difference{Anything: true}},
		"the UID":         {func(c *configstore.Config) { c.UID = "u" }, rules.Difference{Anything: true}},
		"the domain":      {func(c *configstore.Config) { c.Domain = "d" }, rules.Difference{Anything: true}},
		"the labels":      {func(c *configstore.Config) { c.Labels = map[string]string{"a": "b"} }, rules.Difference{Anything: true}},
		"the annotations": {func(c *configstore.Config) { c.Annotations = map[string]string{"a": "b"} }, rules.Difference{Anything: true}},
		"the owners":      {func(c *configstore.Config) { c.OwnerReferences = []configstore.OwnerReference{{Name: "o"}} }, rules.Difference{Anything: true}},
		"the status":      {func(c *configstore.Config) { c.Status = &structpb.Value{} }, rules.Difference{Anything: true}},
		"the spec":        {func(c *configstore.Config) { c.Spec = structpb.NewNumberValue(2) }, rules.Difference{Anything: true, Spec: true}},
	} {
		next := old
		if test.change(&next); rules.Compare(&schema, &old, &next) != test.want {
			t.Errorf("%s: %+v, want %+v", name, rules.Compare(&schema, &old, &next), test.want)
		}
	}
}
