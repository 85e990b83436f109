// SPDX-License-Identifier: Apache-2.0

package istio_test

import (
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
)

// locator finds the same message in any copy of one.
type locator func(root protoreflect.Message) protoreflect.Message

// eachChange yields copies of a message. In each copy one field, at any depth, has another value.
func eachChange(m proto.Message, yield func(path string, variant proto.Message)) {
	here := func(root protoreflect.Message) protoreflect.Message { return root }
	changes(m, string(m.ProtoReflect().Descriptor().Name()), here, func(path string, at locator, change func(protoreflect.Message)) {
		variant := proto.Clone(m)
		change(at(variant.ProtoReflect()))
		yield(path, variant)
	})
}

// changes calls found for every change of every field of what at finds in m.
func changes(m proto.Message, path string, at locator, found func(string, locator, func(protoreflect.Message))) {
	message := at(m.ProtoReflect())
	fields := message.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		name := path + "." + string(f.Name())
		found(name+" cleared", at, func(m protoreflect.Message) { m.Clear(f) })
		found(name+" changed", at, func(m protoreflect.Message) { change(m, f) })
		switch {
		case f.IsList() && f.Message() != nil:
			for j := range message.Get(f).List().Len() {
				element := func(root protoreflect.Message) protoreflect.Message { return at(root).Get(f).List().Get(j).Message() }
				changes(m, name+"[]", element, found)
			}
		case !f.IsMap() && f.Message() != nil && message.Has(f):
			changes(m, name, func(root protoreflect.Message) protoreflect.Message { return at(root).Get(f).Message() }, found)
		}
	}
	found(path+" with an unknown field", at, func(m protoreflect.Message) {
		m.SetUnknown(protoreflect.RawFields{0xf8, 0x07, 0x01}) // field 127, varint 1
	})
}

// change gives a field another value: one more entry or element, a message that
// was not there, or another scalar.
func change(m protoreflect.Message, f protoreflect.FieldDescriptor) {
	switch {
	case f.IsMap():
		m.Mutable(f).Map().Set(protoreflect.ValueOfString("other").MapKey(), scalar(f.MapValue()))
	case f.IsList() && f.Message() != nil:
		m.Mutable(f).List().AppendMutable()
	case f.IsList():
		m.Mutable(f).List().Append(scalar(f))
	case f.Message() != nil:
		m.Mutable(f)
	default:
		m.Set(f, scalar(f))
	}
}

func scalar(f protoreflect.FieldDescriptor) protoreflect.Value {
	switch f.Kind() {
	case protoreflect.StringKind:
		return protoreflect.ValueOfString("another")
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(4242)
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(f.Enum().Values().Get(f.Enum().Values().Len() - 1).Number())
	default:
		panic("no value for a " + f.Kind().String())
	}
}

// TestEqualSeesEveryField: what schemas compare by hand they compare in full, so
// that a field that a later API adds is not forgotten.
func TestEqualSeesEveryField(t *testing.T) {
	workload := &networking.WorkloadEntry{
		Address: "10.0.0.1", Ports: map[string]uint32{"http": 80}, Labels: map[string]string{"app": "web"},
		Network: "n", Locality: "r/z", Weight: 1, ServiceAccount: "sa",
	}
	full := &networking.ServiceEntry{
		Hosts: []string{"a.example.com"}, Addresses: []string{"240.0.0.1"},
		Ports:    []*networking.ServicePort{{Number: 80, Name: "http", Protocol: "HTTP", TargetPort: 8080}},
		Location: networking.ServiceEntry_MESH_EXTERNAL, Resolution: networking.ServiceEntry_STATIC,
		Endpoints: []*networking.WorkloadEntry{workload}, ExportTo: []string{"."}, SubjectAltNames: []string{"san"},
		WorkloadSelector: &networking.WorkloadSelector{Labels: map[string]string{"app": "web"}},
	}
	for _, tt := range []struct {
		kind configstore.GroupVersionKind
		spec proto.Message
	}{
		{istio.ServiceEntry, full},
		{istio.ServiceEntry, &networking.ServiceEntry{}},
		{istio.WorkloadEntry, workload},
		{istio.WorkloadEntry, &networking.WorkloadEntry{}},
	} {
		schema, _ := istio.Schemas().Find(tt.kind)
		if schema.Equal == nil {
			t.Fatalf("%s has no comparison", tt.kind)
		}
		original, n := proto.Clone(tt.spec), 0
		if !schema.EqualSpecs(original, proto.Clone(original)) {
			t.Errorf("%s: a copy is not equal", tt.kind)
		}
		eachChange(proto.Clone(tt.spec), func(path string, variant proto.Message) {
			n++
			want := proto.Equal(original, variant)
			if got := schema.EqualSpecs(original, variant); got != want {
				t.Errorf("%s: equal = %v, want %v", path, got, want)
			}
			if got := schema.EqualSpecs(variant, original); got != want {
				t.Errorf("%s, the other way round: equal = %v, want %v", path, got, want)
			}
		})
		if n < 8 {
			t.Errorf("%s: only %d variants were tried", tt.kind, n)
		}
	}
}

// TestEqualTakesNil compares as proto.Equal what validation would refuse.
func TestEqualTakesNil(t *testing.T) {
	schema, _ := istio.Schemas().Find(istio.ServiceEntry)
	specs := []proto.Message{
		nil, (*networking.ServiceEntry)(nil), &networking.ServiceEntry{}, &networking.WorkloadEntry{},
		&networking.ServiceEntry{Ports: []*networking.ServicePort{nil}},
		&networking.ServiceEntry{Ports: []*networking.ServicePort{{}}},
		&networking.ServiceEntry{Endpoints: []*networking.WorkloadEntry{nil}},
		&networking.ServiceEntry{WorkloadSelector: &networking.WorkloadSelector{}},
	}
	for i, a := range specs {
		for j, b := range specs {
			if got, want := schema.EqualSpecs(a, b), configstore.EqualMessage(a, b); got != want {
				t.Errorf("specs %d and %d: equal = %v, want %v", i, j, got, want)
			}
		}
	}
}

func BenchmarkEqual(b *testing.B) {
	schema, _ := istio.Schemas().Find(istio.ServiceEntry)
	a := standardEntry(5).Spec
	c := proto.Clone(a)
	b.Run("schema", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			schema.EqualSpecs(a, c)
		}
	})
	b.Run("proto.Equal", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			proto.Equal(a, c)
		}
	})
}
