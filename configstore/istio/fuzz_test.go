// SPDX-License-Identifier: Apache-2.0

package istio_test

import (
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
)

// FuzzValidate gives every validator specs decoded from arbitrary bytes, and the
// same again with null elements in their lists and maps, which decoding never
// yields but a Go program may. Nothing may panic, every finding must have a path
// and a message, the same spec must get the same findings twice, and the spec
// must not be modified.
func FuzzValidate(f *testing.F) {
	schemas := istio.Schemas().All()
	for i, schema := range schemas {
		for _, seed := range seeds(f, schema.GroupVersionKind) {
			f.Add(i, seed)
		}
		for _, doc := range readVerdicts(f, schema.GroupVersionKind.Kind) {
			f.Add(i, encoded(f, doc))
		}
	}
	f.Fuzz(func(t *testing.T, i int, encoded []byte) {
		schema := schemas[uint(i)%uint(len(schemas))]
		spec := schema.NewSpec()
		if (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(encoded, spec) != nil {
			return
		}
		validateTwice(t, schema, spec)
		punctured := proto.Clone(spec)
		puncture(punctured.ProtoReflect())
		validateTwice(t, schema, punctured)
	})
}

// encoded returns the spec of a document of testdata/verdicts.
func encoded(tb testing.TB, doc verdictDoc) []byte {
	tb.Helper()
	spec, err := proto.Marshal(parseVerdict(tb, doc).Spec)
	if err != nil {
		tb.Fatal(err)
	}
	return spec
}

// FuzzHeaderValue: a value that Envoy's formatter accepts stays valid when repeated, and literal
// text never makes an invalid value valid.
func FuzzHeaderValue(f *testing.F) {
	for _, value := range []string{
		"a", "100%%", "%HOSTNAME%", "%REQ(:PATH?X-A):10%", "%START_TIME(%Y/%m)%", `%UPSTREAM_METADATA(["a", "b"])%`,
		"%", "50% off", "50% off 20%", "%REQ(:path", "%START_TIME%%", "%REQ(a):%", "%%%", "%A(b))%", "a\x7f",
	} {
		f.Add(value)
	}
	schema, _ := istio.Schemas().Find(istio.VirtualService)
	taken := func(value string) bool {
		_, err := schema.Check(configstore.Config{Meta: configstore.Meta{Name: "a"}, Spec: &networking.VirtualService{
			Hosts: []string{"a.example.com"},
			Http: []*networking.HTTPRoute{{
				Route:   []*networking.HTTPRouteDestination{{Destination: &networking.Destination{Host: "b"}}},
				Headers: &networking.Headers{Request: &networking.Headers_HeaderOperations{Set: map[string]string{"x-a": value}}},
			}},
		}})
		return err == nil
	}
	f.Fuzz(func(t *testing.T, value string) {
		if !utf8.ValidString(value) {
			return
		}
		ok := taken(value)
		if !strings.Contains(value, "%") && ok != !strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
			t.Errorf("%q without commands: %v", value, ok)
		}
		if ok && !taken(value+" %HOSTNAME% "+value) {
			t.Errorf("%q is taken, but not twice", value)
		}
		if !ok && !strings.Contains(value, "(") && taken("a "+value+" b") {
			t.Errorf("%q is taken between letters only", value)
		}
	})
}

func validateTwice(t *testing.T, schema configstore.Schema, spec proto.Message) {
	t.Helper()
	c := configstore.Config{
		Meta: configstore.Meta{GroupVersionKind: schema.GroupVersionKind, Name: "a", Namespace: "ns"},
		Spec: spec,
	}
	before := proto.Clone(spec)
	warnings, violations := schema.Validate(c)
	again, violationsAgain := schema.Validate(c)
	if !reflect.DeepEqual(warnings, again) || !reflect.DeepEqual(violations, violationsAgain) {
		t.Errorf("two runs differ: %v %v\nand %v %v", warnings, violations, again, violationsAgain)
	}
	for _, v := range append(warnings, violations...) {
		if v.Field == "" || v.Message == "" {
			t.Errorf("finding without field or message: %+v", v)
		}
	}
	if !proto.Equal(before, spec) {
		t.Errorf("validation modified the spec: %v, was %v", spec, before)
	}
}

// puncture adds a null to every list of messages and to every map of messages
// with string keys.
func puncture(m protoreflect.Message) {
	m.Range(func(fd protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		switch {
		case fd.IsList() && fd.Message() != nil:
			list := value.List()
			for i := range list.Len() {
				puncture(list.Get(i).Message())
			}
			list.Append(protoreflect.ValueOfMessage(null(list.NewElement())))
		case fd.IsMap() && fd.MapValue().Message() != nil && fd.MapKey().Kind() == protoreflect.StringKind:
			value.Map().Range(func(_ protoreflect.MapKey, element protoreflect.Value) bool {
				puncture(element.Message())
				return true
			})
			key := protoreflect.ValueOfString("null").MapKey()
			value.Map().Set(key, protoreflect.ValueOfMessage(null(value.Map().NewValue())))
		case !fd.IsList() && !fd.IsMap() && fd.Message() != nil:
			puncture(value.Message())
		}
		return true
	})
}

// null returns the nil message of the type of an element.
func null(element protoreflect.Value) protoreflect.Message { return element.Message().Type().Zero() }
