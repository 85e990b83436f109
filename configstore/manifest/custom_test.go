// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/manifest"
	"github.com/pilotkit/pilotkit/internal/test/histories"
)

// everything builds a message with fields of every type that JSON treats in a
// way of its own.
type everything struct{ message *descriptorpb.DescriptorProto }

func (e everything) field(name string, kind descriptorpb.FieldDescriptorProto_Type, typeName string, repeated bool) {
	fd := &descriptorpb.FieldDescriptorProto{
		Name: new(name), Number: new(int32(len(e.message.Field) + 1)), Type: &kind,
		Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
	}
	if repeated {
		fd.Label = descriptorpb.FieldDescriptorProto_LABEL_REPEATED.Enum()
	}
	if typeName != "" {
		fd.TypeName = new(typeName)
	}
	e.message.Field = append(e.message.Field, fd)
}

// mapField adds a map from a scalar to google.protobuf.Value.
func (e everything) mapField(name string, key descriptorpb.FieldDescriptorProto_Type) {
	entry := everything{message: &descriptorpb.DescriptorProto{
		Name:    new("Map" + strings.ToUpper(name[:1]) + name[1:] + "Entry"),
		Options: &descriptorpb.MessageOptions{MapEntry: new(true)},
	}}
	entry.field("key", key, "", false)
	entry.field("value", descriptorpb.FieldDescriptorProto_TYPE_MESSAGE, ".google.protobuf.Value", false)
	e.message.NestedType = append(e.message.NestedType, entry.message)
	e.field("map_"+name, descriptorpb.FieldDescriptorProto_TYPE_MESSAGE, ".test.Everything."+entry.message.GetName(), true)
}

func (e everything) scalars() {
	for kind := descriptorpb.FieldDescriptorProto_TYPE_DOUBLE; kind <= descriptorpb.FieldDescriptorProto_TYPE_SINT64; kind++ {
		name := strings.ToLower(strings.TrimPrefix(kind.String(), "TYPE_"))
		switch kind {
		case descriptorpb.FieldDescriptorProto_TYPE_GROUP, descriptorpb.FieldDescriptorProto_TYPE_MESSAGE,
			descriptorpb.FieldDescriptorProto_TYPE_ENUM:
			continue
		case descriptorpb.FieldDescriptorProto_TYPE_FLOAT, descriptorpb.FieldDescriptorProto_TYPE_DOUBLE,
			descriptorpb.FieldDescriptorProto_TYPE_BYTES:
			// These cannot be the keys of maps.
		default:
			e.mapField(name, kind)
		}
		e.field("one_"+name, kind, "", false)
		e.field("many_"+name, kind, "", true)
	}
}

// everythingSchema returns a kind whose message no Go package knows, like those
// of users who load their descriptors.
func everythingSchema(t *testing.T) configstore.Schema {
	t.Helper()
	file := &descriptorpb.FileDescriptorProto{
		Name: new("everything.proto"), Package: new("test"), Syntax: new("proto3"),
		MessageType: []*descriptorpb.DescriptorProto{{Name: new("Everything")}},
	}
	e := everything{message: file.MessageType[0]}
	e.scalars()
	seen := map[string]bool{}
	for _, m := range []proto.Message{
		&structpb.Struct{}, &structpb.ListValue{}, &structpb.Value{}, &durationpb.Duration{}, &timestamppb.Timestamp{}, &emptypb.Empty{},
		&wrapperspb.BoolValue{}, &wrapperspb.Int32Value{}, &wrapperspb.Int64Value{}, &wrapperspb.UInt32Value{}, &wrapperspb.UInt64Value{},
		&wrapperspb.FloatValue{}, &wrapperspb.DoubleValue{}, &wrapperspb.StringValue{}, &wrapperspb.BytesValue{},
		&anypb.Any{}, &fieldmaskpb.FieldMask{},
	} {
		md := m.ProtoReflect().Descriptor()
		if path := md.ParentFile().Path(); !seen[path] {
			seen[path] = true
			file.Dependency = append(file.Dependency, path)
		}
		name := strings.ToLower(string(md.Name()))
		e.field("wk_"+name, descriptorpb.FieldDescriptorProto_TYPE_MESSAGE, "."+string(md.FullName()), false)
		e.field("wks_"+name, descriptorpb.FieldDescriptorProto_TYPE_MESSAGE, "."+string(md.FullName()), true)
	}
	e.field("null", descriptorpb.FieldDescriptorProto_TYPE_ENUM, ".google.protobuf.NullValue", false)
	fd, err := protodesc.NewFile(file, protoregistry.GlobalFiles)
	if err != nil {
		t.Fatal(err)
	}
	return configstore.Schema{
		GroupVersionKind: configstore.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Everything"},
		Spec:             dynamicpb.NewMessage(fd.Messages().Get(0)),
	}
}

func TestCustomKindWithEveryType(t *testing.T) {
	schema := everythingSchema(t)
	schemas := configstore.NewSchemasBuilder().MustAdd(schema).Build()
	for _, seed := range histories.Seeds(t, 200) {
		g := generator{Rand: rand.New(rand.NewPCG(seed, 2))}
		c := configstore.Config{Meta: g.meta(schema.GroupVersionKind), Spec: schema.NewSpec()}
		m := c.Spec.ProtoReflect()
		g.fill(m, 4)
		fields := m.Descriptor().Fields()
		doubles := []float64{math.Inf(1), math.Inf(-1), math.MaxFloat64, math.Copysign(0, -1), 0.1, 5e-324, 1e21}
		floats := []float32{math.MaxFloat32, math.SmallestNonzeroFloat32, 16777216, 0.1}
		m.Set(fields.ByName("one_double"), protoreflect.ValueOfFloat64(doubles[seed%7]))
		m.Set(fields.ByName("one_float"), protoreflect.ValueOfFloat32(floats[seed%4]))
		checkRoundTrip(t, schemas, c, manifest.Options{})
		checkAgainstProtojson(t, schema, c)
	}
}

// A message in an Any is one that the program knows.
func TestAny(t *testing.T) {
	schema := everythingSchema(t)
	schemas := configstore.NewSchemasBuilder().MustAdd(schema).Build()
	c := configstore.Config{
		Meta: configstore.Meta{GroupVersionKind: schema.GroupVersionKind, Name: "a"}, Spec: schema.NewSpec(),
	}
	packed, err := anypb.New(durationpb.New(90 * time.Second))
	if err != nil {
		t.Fatal(err)
	}
	m := c.Spec.ProtoReflect()
	m.Mutable(m.Descriptor().Fields().ByName("wk_any")).Message().Set(packed.ProtoReflect().Descriptor().Fields().ByName("type_url"), protoreflect.ValueOfString(packed.TypeUrl))
	m.Mutable(m.Descriptor().Fields().ByName("wk_any")).Message().Set(packed.ProtoReflect().Descriptor().Fields().ByName("value"), protoreflect.ValueOfBytes(packed.Value))
	checkRoundTrip(t, schemas, c, manifest.Options{})
	checkAgainstProtojson(t, schema, c)

	text := "apiVersion: example.com/v1\nkind: Everything\nmetadata: {name: a}\nspec:\n  wk_any: {'@type': type.example.com/no.Such}\n"
	if _, err := manifest.ParseAll(schemas, []byte(text), manifest.Options{}); err == nil || !strings.Contains(err.Error(), "line 5, column 11: spec.wk_any: must be a google.protobuf.Any: ") {
		t.Errorf("Any of an unknown type: %v", err)
	} else if strings.Contains(err.Error(), "proto:") || strings.Contains(err.Error(), "line 1") {
		t.Errorf("error names places that the user does not know: %v", err)
	}
}
