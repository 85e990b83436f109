// SPDX-License-Identifier: Apache-2.0

package configstore_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/apipb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilotkit/pilotkit/configstore"
)

// textSchema is a schema, in Schemas, of a kind with specs and statuses of a type,
// whose strings are all of one line.
func textSchema(t *testing.T, m proto.Message) configstore.Schema {
	t.Helper()
	kind := configstore.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Text"}
	schemas := configstore.NewSchemasBuilder().MustAdd(configstore.Schema{
		GroupVersionKind: kind, Spec: m.ProtoReflect().New().Interface(), Status: m.ProtoReflect().New().Interface(),
		Text: func(protoreflect.FieldDescriptor) configstore.TextRule { return configstore.TextLine },
	}).Build()
	schema, _ := schemas.Find(kind)
	return schema
}

func textOf(t *testing.T, schema configstore.Schema, c configstore.Config) []string {
	t.Helper()
	if c.Name == "" {
		c.Name = "a"
	}
	c.GroupVersionKind = schema.GroupVersionKind
	_, err := schema.Check(c)
	if err == nil {
		return nil
	}
	_, problems, ok := strings.Cut(err.Error(), " is invalid: ")
	if !ok {
		t.Fatal(err)
	}
	return strings.Split(problems, "; ")
}

func TestTextOfMetadata(t *testing.T) {
	t.Parallel()
	schema := textSchema(t, &structpb.Struct{})
	for _, bad := range []string{"\n", "\xff"} {
		problem := "must not hold control characters"
		if bad == "\xff" {
			problem = "must be UTF-8"
		}
		s := "a" + bad
		said := fmt.Sprintf("%s, is %q", problem, s)
		got := textOf(t, schema, configstore.Config{
			Meta: configstore.Meta{
				Name: s, Namespace: s, UID: s, Domain: s, ResourceVersion: s,
				Labels:          map[string]string{"b": s, "c": "c", s: "d"},
				Annotations:     map[string]string{"b": s, s: "d"},
				OwnerReferences: []configstore.OwnerReference{{}, {APIVersion: s, Kind: s, Name: s, UID: s}},
			},
			Spec: &structpb.Struct{},
		})
		want := []string{
			"metadata.name: " + said, "metadata.namespace: " + said, "metadata.uid: " + said, "domain: " + said, "metadata.resourceVersion: " + said,
			fmt.Sprintf("metadata.labels[%q]: key %s", s, said), "metadata.labels[b]: " + said,
			fmt.Sprintf("metadata.annotations[%q]: key %s", s, said), "metadata.annotations[b]: " + said,
			"metadata.ownerReferences[1].apiVersion: " + said, "metadata.ownerReferences[1].kind: " + said,
			"metadata.ownerReferences[1].name: " + said, "metadata.ownerReferences[1].uid: " + said,
		}
		if bad == "\n" {
			want = append(want[:8], want[9:]...)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", bad, diff)
		}
	}
}

// TestTextOfAnyShape: the types of protobuf that hold values of any shape have the
// rule of the field that holds them; a spec is held by none.
func TestTextOfAnyShape(t *testing.T) {
	t.Parallel()
	value := func(s string) *structpb.Value {
		return structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{
			structpb.NewNullValue(), structpb.NewStructValue(&structpb.Struct{Fields: map[string]*structpb.Value{"a": structpb.NewStringValue(s)}}),
		}})
	}
	held, err := anypb.New(&apipb.Api{Name: "a\n", Methods: []*apipb.Method{{Name: "b\x00"}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		spec proto.Message
		want []string
	}{
		{name: "lines in a value", spec: value("a\n")},
		{name: "no UTF-8 in a value", spec: value("\xff"), want: []string{`spec[1].a: must be UTF-8, is "\xff"`}},
		{
			name: "a key", spec: &structpb.Struct{Fields: map[string]*structpb.Value{"a\xff": nil}},
			want: []string{`spec."a\xff": key must be UTF-8, is "a\xff"`},
		},
		{name: "a wrapper", spec: wrapperspb.String("\xff"), want: []string{`spec: must be UTF-8, is "\xff"`}},
		{name: "fields", spec: &apipb.Api{Version: "a\n", Methods: []*apipb.Method{nil, {Name: "b\x00"}}}, want: []string{
			`spec.methods[1].name: must not hold control characters, is "b\x00"`,
			`spec.version: must not hold control characters, is "a\n"`,
		}},
		{name: "a message of a known type", spec: held, want: []string{
			`spec.name: must not hold control characters, is "a\n"`,
			`spec.methods[0].name: must not hold control characters, is "b\x00"`,
		}},
		{name: "a message of an unknown type", spec: &anypb.Any{TypeUrl: "example.com/a.B", Value: []byte("\xff")}},
		{name: "the name of a type", spec: &anypb.Any{TypeUrl: "a\n"}, want: []string{`spec.@type: must not hold control characters, is "a\n"`}},
		{
			name: "no message", spec: &anypb.Any{TypeUrl: held.TypeUrl, Value: []byte("\xff")},
			want: []string{"spec: must hold a google.protobuf.Api: "},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			schema := textSchema(t, tt.spec)
			got := textOf(t, schema, configstore.Config{Spec: tt.spec})
			if tt.name == "no message" && len(got) == 1 { // protobuf's errors differ from program to program
				got[0] = got[0][:min(len(got[0]), len(tt.want[0]))]
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestTextOfDynamicMessage: a spec need not have a generated Go type.
func TestTextOfDynamicMessage(t *testing.T) {
	t.Parallel()
	spec := dynamicpb.NewMessage((&apipb.Api{}).ProtoReflect().Descriptor())
	spec.Set(spec.Descriptor().Fields().ByName("name"), protoreflect.ValueOfString("a\n"))
	got := textOf(t, textSchema(t, spec), configstore.Config{Spec: spec})
	if diff := cmp.Diff([]string{`spec.name: must not hold control characters, is "a\n"`}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestTextOfStatus: a status is shown to people, in lines or not.
func TestTextOfStatus(t *testing.T) {
	t.Parallel()
	schema := textSchema(t, &apipb.Api{})
	for s, want := range map[string][]string{"a\nb": nil, "a\xff": {`status.name: must be UTF-8, is "a\xff"`}} {
		got := textOf(t, schema, configstore.Config{Spec: &apipb.Api{}, Status: &apipb.Api{Name: s}})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", s, diff)
		}
	}
}

// TestMessageThatHoldsItself: only a Go program can make one. It is refused before
// anything else walks it, as that would exhaust the stack, which ends the process.
func TestMessageThatHoldsItself(t *testing.T) {
	t.Parallel()
	spec := &structpb.Struct{Fields: map[string]*structpb.Value{}}
	spec.Fields["a"] = structpb.NewStructValue(spec)
	schema := textSchema(t, spec)
	schema.Validate = func(configstore.Config) (warnings, violations []configstore.Violation) {
		t.Error("it is validated")
		return nil, nil
	}
	got := textOf(t, schema, configstore.Config{Spec: spec})
	if len(got) != 1 || !strings.HasPrefix(got[0], "spec.a.a.a") || !strings.HasSuffix(got[0], ": nests deeper than 10000 messages") || len(got[0]) > 1000 {
		t.Errorf("got %q", got)
	}
}

// TestErrorsHaveABound: neither the number nor the length of the strings of an
// object decides how long the error is that refuses it.
func TestErrorsHaveABound(t *testing.T) {
	t.Parallel()
	huge := strings.Repeat("\n", 1<<16)
	spec := &apipb.Api{Name: huge}
	for range 1000 {
		spec.Methods = append(spec.Methods, &apipb.Method{Name: huge})
	}
	schema := textSchema(t, spec)
	schema.Validate = func(configstore.Config) (warnings, violations []configstore.Violation) {
		for range 1000 {
			warnings = append(warnings, configstore.Violation{Field: huge, Message: huge})
		}
		return warnings, warnings
	}
	c := configstore.Config{Meta: configstore.Meta{Name: huge, Namespace: huge}, Spec: spec}
	warnings, err := schema.Check(c)
	if err == nil || len(err.Error()) > 1<<16 || !strings.HasSuffix(err.Error(), "; and 81 more") {
		t.Errorf("%.1000v", err)
	}
	if n := len(warnings); n != configstore.MaxViolations+1 || warnings[n-1].Message != "and 900 more" {
		t.Errorf("%d warnings", n)
	}
	for _, w := range warnings {
		if len(w.String()) > 1<<14 {
			t.Errorf("%.100q has %d bytes", w.String(), len(w.String()))
		}
	}
	if object := c.Key().Object(); len(object) > 4096 || !strings.Contains(object, `... (65536 bytes)"`) {
		t.Errorf("%.100q has %d bytes", object, len(object))
	}
}
