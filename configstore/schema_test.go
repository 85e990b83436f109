// SPDX-License-Identifier: Apache-2.0

package configstore_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilotkit/pilotkit/configstore"
)

func version(v, kind string) configstore.GroupVersionKind {
	return configstore.GroupVersionKind{Group: "example.com", Version: v, Kind: kind}
}

func schema(kind string, aliases ...string) configstore.Schema {
	return configstore.Schema{
		GroupVersionKind: version("v1", kind), Aliases: aliases, Plural: strings.ToLower(kind) + "s",
		Spec: &structpb.Struct{}, Status: &wrapperspb.StringValue{},
	}
}

func TestSchemasLookups(t *testing.T) {
	schemas := configstore.NewSchemasBuilder().
		MustAdd(schema("A", "v1alpha3", "v1beta1")).
		MustAdd(schema("B")).
		Build()
	tests := []struct {
		name string
		kind configstore.GroupVersionKind
		want configstore.GroupVersionKind // zero: not found
	}{
		{name: "canonical", kind: version("v1", "A"), want: version("v1", "A")},
		{name: "first alias", kind: version("v1alpha3", "A"), want: version("v1", "A")},
		{name: "second alias", kind: version("v1beta1", "A"), want: version("v1", "A")},
		{name: "without aliases", kind: version("v1", "B"), want: version("v1", "B")},
		{name: "alias of another kind", kind: version("v1beta1", "B")},
		{name: "unknown kind", kind: version("v1", "C")},
		{name: "unknown group", kind: configstore.GroupVersionKind{Group: "other", Version: "v1", Kind: "A"}},
		{name: "zero"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			known := tt.want != configstore.GroupVersionKind{}
			if got := schemas.Has(tt.kind); got != known {
				t.Errorf("Has(%s) = %v, want %v", tt.kind, got, known)
			}
			if got, ok := schemas.Find(tt.kind); got.GroupVersionKind != tt.want || ok != known {
				t.Errorf("Find(%s) = %s, %v, want %s, %v", tt.kind, got.GroupVersionKind, ok, tt.want, known)
			}
		})
	}
}

func TestZeroSchemasAreEmpty(t *testing.T) {
	var schemas configstore.Schemas
	if _, ok := schemas.Find(version("v1", "A")); ok || len(schemas.All()) != 0 {
		t.Error("the zero Schemas is not empty")
	}
	if _, ok := schemas.KindOf(&structpb.Struct{}); ok {
		t.Error("the zero Schemas has a kind")
	}
	if got := len(schemas.Union(configstore.Schemas{}).All()); got != 0 {
		t.Errorf("union of nothing has %d kinds", got)
	}
}

func TestSchemasAreImmutable(t *testing.T) {
	b := configstore.NewSchemasBuilder().MustAdd(schema("A"))
	built := b.Build()
	b.MustAdd(schema("B"))
	if _, ok := built.Find(version("v1", "B")); ok || len(built.All()) != 1 {
		t.Error("adding to the builder changed what it had built")
	}
	built.All()[0].Plural = "changed"
	if got := built.All()[0].Plural; got != "as" {
		t.Errorf("changing the result of All changed the schemas: %q", got)
	}
}

func TestBuilderErrors(t *testing.T) {
	tests := []struct {
		name   string
		schema configstore.Schema
		want   string
		is     error
	}{
		{
			name:   "no kind",
			schema: configstore.Schema{GroupVersionKind: version("v1", ""), Spec: &structpb.Struct{}},
			want:   "schema example.com/v1/: kind and version are required",
		},
		{
			name:   "no version",
			schema: configstore.Schema{GroupVersionKind: version("", "C"), Spec: &structpb.Struct{}},
			want:   "schema example.com//C: kind and version are required",
		},
		{
			name:   "no spec",
			schema: configstore.Schema{GroupVersionKind: version("v1", "C")},
			want:   "schema example.com/v1/C: a spec type is required",
		},
		{
			name:   "known kind",
			schema: schema("A"),
			want:   "schema example.com/v1/A: version v1: already exists",
			is:     configstore.ErrAlreadyExists,
		},
		{
			name:   "alias is another's version",
			schema: configstore.Schema{GroupVersionKind: version("v2", "A"), Aliases: []string{"v1beta1"}, Spec: &structpb.Struct{}},
			want:   "schema example.com/v2/A: version v1beta1: already exists",
			is:     configstore.ErrAlreadyExists,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := configstore.NewSchemasBuilder().MustAdd(schema("A", "v1beta1"))
			err := b.Add(tt.schema)
			if err == nil || err.Error() != tt.want {
				t.Fatalf("Add = %v, want %q", err, tt.want)
			}
			if tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("Add = %v, want one that is %v", err, tt.is)
			}
			if got := len(b.Build().All()); got != 1 {
				t.Errorf("a refused schema was added: %d kinds", got)
			}
			defer func() {
				if got := recover(); got != "configstore: "+tt.want {
					t.Errorf("MustAdd panics with %v, want the error", got)
				}
			}()
			b.MustAdd(tt.schema)
		})
	}
}

func TestUnionFirstWins(t *testing.T) {
	first := schema("A")
	first.Plural = "first"
	second := schema("A")
	second.Plural = "second"
	a := configstore.NewSchemasBuilder().MustAdd(first).Build()
	b := configstore.NewSchemasBuilder().MustAdd(schema("B")).MustAdd(second).MustAdd(schema("C", "v1beta1")).Build()
	union := a.Union(b, configstore.NewSchemasBuilder().MustAdd(schema("D")).Build())
	var kinds []string
	for _, s := range union.All() {
		kinds = append(kinds, s.GroupVersionKind.Kind)
	}
	if diff := cmp.Diff([]string{"A", "B", "C", "D"}, kinds); diff != "" {
		t.Errorf("kinds (-want +got):\n%s", diff)
	}
	if got, _ := union.Find(version("v1", "A")); got.Plural != "first" {
		t.Errorf("Find(A) = the schema of %q, want that of the first", got.Plural)
	}
	if got, _ := union.Find(version("v1beta1", "C")); got.GroupVersionKind != version("v1", "C") {
		t.Errorf("an alias was lost: %s", got.GroupVersionKind)
	}
	if len(a.All()) != 1 || len(b.All()) != 3 {
		t.Error("Union changed its operands")
	}
}

// Lookups find every kind and allocate nothing, however many kinds there are.
func TestLookups(t *testing.T) {
	for _, n := range []int{1, 60, 64, 65, 1000} {
		b := configstore.NewSchemasBuilder()
		for i := range n {
			b.MustAdd(schema(fmt.Sprintf("K%d", i), "v1beta1"))
		}
		schemas := b.Build()
		for _, want := range schemas.All() {
			for _, v := range []string{"v1", "v1beta1"} {
				kind := version(v, want.GroupVersionKind.Kind)
				if got, ok := schemas.Find(kind); !ok || got.GroupVersionKind != want.GroupVersionKind {
					t.Fatalf("n=%d: Find(%s) = %s, %v, want %s", n, kind, got.GroupVersionKind, ok, want.GroupVersionKind)
				}
			}
		}
		last := version("v1beta1", fmt.Sprintf("K%d", n-1))
		allocations := testing.AllocsPerRun(100, func() {
			if _, ok := schemas.Find(last); !ok {
				t.Fatal("lost")
			}
		})
		if allocations != 0 {
			t.Errorf("n=%d: %v allocations, want none", n, allocations)
		}
	}
}

func TestKindOf(t *testing.T) {
	message := schema("M", "v1beta1")
	message.Spec = &wrapperspb.StringValue{}
	schemas := configstore.NewSchemasBuilder().MustAdd(schema("A")).MustAdd(message).MustAdd(schema("B")).Build()
	for name, tt := range map[string]struct {
		spec proto.Message
		want configstore.GroupVersionKind // zero: none
	}{
		"one":        {wrapperspb.String("x"), version("v1", "M")},
		"a nil one":  {(*wrapperspb.StringValue)(nil), version("v1", "M")},
		"two":        {&structpb.Struct{}, configstore.GroupVersionKind{}},
		"none":       {wrapperspb.Int32(1), configstore.GroupVersionKind{}},
		"no message": {nil, configstore.GroupVersionKind{}},
	} {
		if got, ok := schemas.KindOf(tt.spec); got != tt.want || ok != (got != configstore.GroupVersionKind{}) {
			t.Errorf("%s: KindOf = %s, %v, want %s", name, got, ok, tt.want)
		}
	}
}

func BenchmarkFind(b *testing.B) {
	for _, n := range []int{10, 1000, 100000} {
		builder := configstore.NewSchemasBuilder()
		kinds := make([]configstore.GroupVersionKind, n)
		for i := range kinds {
			builder.MustAdd(schema(fmt.Sprintf("K%d", i), "v1beta1"))
			kinds[i] = version("v1beta1", fmt.Sprintf("K%d", i))
		}
		schemas := builder.Build()
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				if !schemas.Has(kinds[i*7919%n]) {
					b.Fatal("lost")
				}
				i++
			}
		})
	}
}

func TestSchemaNewMessages(t *testing.T) {
	s := schema("A")
	spec, again := s.NewSpec(), s.NewSpec()
	if _, ok := spec.(*structpb.Struct); !ok || spec == again || spec == s.Spec {
		t.Errorf("NewSpec() = %T, the same as before: %v, the schema's own: %v", spec, spec == again, spec == s.Spec)
	}
	if _, ok := s.NewStatus().(*wrapperspb.StringValue); !ok {
		t.Errorf("NewStatus() = %T", s.NewStatus())
	}
	s.Status = nil
	if got := s.NewStatus(); got != nil {
		t.Errorf("NewStatus() of a kind without = %v, want nil", got)
	}
}

func TestSchemaCheck(t *testing.T) {
	good := configstore.Config{
		Meta: configstore.Meta{GroupVersionKind: version("v1", "A"), Name: "a", Namespace: "ns"},
		Spec: &structpb.Struct{},
	}
	change := func(f func(*configstore.Config)) configstore.Config {
		c := good
		f(&c)
		return c
	}
	tests := []struct {
		name   string
		schema func(*configstore.Schema)
		config configstore.Config
		want   string
	}{
		{name: "good", config: good},
		{name: "good status", config: change(func(c *configstore.Config) { c.Status = &wrapperspb.StringValue{} })},
		{
			name:   "no name",
			config: change(func(c *configstore.Config) { c.Name = "" }),
			want:   "A ns/ is invalid: metadata.name: is required",
		},
		{
			name:   "no spec",
			config: change(func(c *configstore.Config) { c.Spec = nil }),
			want:   "A ns/a is invalid: spec: is required",
		},
		{
			name:   "nil spec of the right type",
			config: change(func(c *configstore.Config) { c.Spec = (*structpb.Struct)(nil) }),
			want:   "A ns/a is invalid: spec: is required",
		},
		{
			name:   "spec and status of the wrong type",
			config: change(func(c *configstore.Config) { c.Spec, c.Status = &wrapperspb.BoolValue{}, &structpb.Struct{} }),
			want: "A ns/a is invalid: spec: must be a google.protobuf.Struct, is a google.protobuf.BoolValue; " +
				"status: must be a google.protobuf.StringValue, is a google.protobuf.Struct",
		},
		{
			name:   "nil status of the right type",
			config: change(func(c *configstore.Config) { c.Status = (*wrapperspb.StringValue)(nil) }),
			want:   "A ns/a is invalid: status: must not be a nil message",
		},
		{
			name:   "status of a kind without",
			schema: func(s *configstore.Schema) { s.Status = nil },
			config: change(func(c *configstore.Config) { c.Status = &wrapperspb.StringValue{} }),
			want:   "A ns/a is invalid: status: the kind has none",
		},
		{
			name:   "namespace of a cluster-scoped kind",
			schema: func(s *configstore.Schema) { s.ClusterScoped = true },
			config: good,
			want:   `A ns/a is invalid: metadata.namespace: must be empty for a cluster-scoped kind, is "ns"`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := schema("A")
			if tt.schema != nil {
				tt.schema(&s)
			}
			_, err := s.Check(tt.config)
			got := ""
			if err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("Check =\n%s, want\n%s", got, tt.want)
			}
			if (err != nil) != errors.Is(err, configstore.ErrInvalid) {
				t.Errorf("Check = %v, which is not ErrInvalid", err)
			}
		})
	}
}

func TestSchemaCheckRunsValidator(t *testing.T) {
	warning := configstore.Violation{Field: "spec.a", Message: "is odd"}
	violation := configstore.Violation{Field: "spec.b", Message: "is wrong"}
	calls := 0
	s := schema("A")
	refuse := false
	s.Validate = func(c configstore.Config) (warnings, violations []configstore.Violation) {
		calls++
		if _, ok := c.Spec.(*structpb.Struct); !ok {
			t.Errorf("the validator got a %T", c.Spec)
		}
		if refuse {
			violations = []configstore.Violation{violation}
		}
		return []configstore.Violation{warning}, violations
	}
	c := configstore.Config{Meta: configstore.Meta{Name: "a"}, Spec: &structpb.Struct{}}
	warnings, err := s.Check(c)
	if diff := cmp.Diff([]configstore.Violation{warning}, warnings); diff != "" || err != nil {
		t.Errorf("Check = %v, %v, want the warning alone", warnings, err)
	}
	refuse = true
	warnings, err = s.Check(c)
	var invalid *configstore.ValidationError
	if !errors.As(err, &invalid) {
		t.Fatalf("Check = %v, want a ValidationError", err)
	}
	if diff := cmp.Diff([]configstore.Violation{violation}, invalid.Violations); diff != "" || len(warnings) != 1 {
		t.Errorf("Check = %v, %v", warnings, err)
	}
	c.Spec = proto.Message(&wrapperspb.BoolValue{})
	if _, err = s.Check(c); err == nil || calls != 2 {
		t.Errorf("Check of a wrong type = %v after %d calls of the validator, want an error and 2", err, calls)
	}
}
