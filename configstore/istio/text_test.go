// SPDX-License-Identifier: Apache-2.0

package istio_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/memory"
)

// stringPlace is a place in the spec of a kind that holds a string, by the
// descriptors of the kind's messages.
type stringPlace struct {
	schema configstore.Schema
	steps  []stringStep
	// inStruct is the rest of the path in a google.protobuf.Struct.
	inStruct string
}

// stringStep is a field, or the key of a map field.
type stringStep struct {
	field protoreflect.FieldDescriptor
	key   bool
}

// stringPlaces returns all places of all kinds, but in no message that is part of
// itself.
func stringPlaces() []stringPlace {
	var places []stringPlace
	for _, schema := range istio.Schemas().All() {
		var visit func(md protoreflect.MessageDescriptor, above []stringStep)
		visit = func(md protoreflect.MessageDescriptor, above []stringStep) {
			for i := range md.Fields().Len() {
				fd := md.Fields().Get(i)
				steps := append(slices.Clone(above), stringStep{field: fd})
				content := fd
				if fd.IsMap() {
					content = fd.MapValue()
					if fd.MapKey().Kind() == protoreflect.StringKind {
						places = append(places, stringPlace{schema: schema, steps: append(slices.Clone(above), stringStep{fd, true})})
					}
				}
				switch message := content.Message(); {
				case content.Kind() == protoreflect.StringKind:
					places = append(places, stringPlace{schema: schema, steps: steps})
				case message == nil:
				case message.FullName() == "google.protobuf.Struct":
					for _, rest := range []string{".KEY", ".a", ".a[0].b"} {
						places = append(places, stringPlace{schema: schema, steps: steps, inStruct: rest})
					}
				case !strings.HasPrefix(string(message.FullName()), "google.protobuf."):
					visit(message, steps)
				}
			}
		}
		visit(schema.Spec.ProtoReflect().Descriptor(), nil)
	}
	return places
}

// field is the descriptor that the rule for the string is asked about.
func (p stringPlace) field() protoreflect.FieldDescriptor {
	last := p.steps[len(p.steps)-1]
	switch {
	case last.key:
		return last.field.MapKey()
	case last.field.IsMap():
		return last.field.MapValue()
	default:
		return last.field
	}
}

// build returns a spec that holds only s, at the place.
func (p stringPlace) build(s string) proto.Message {
	spec := p.schema.NewSpec()
	m := spec.ProtoReflect()
	for i, step := range p.steps {
		last := i == len(p.steps)-1
		fd, text := step.field, protoreflect.ValueOfString(s)
		switch {
		case fd.IsMap():
			key, value := entryOf(m, fd)
			if step.key {
				key = text.MapKey()
			} else if last && fd.MapValue().Message() == nil {
				value = text
			}
			m.Mutable(fd).Map().Set(key, value)
			if fd.MapValue().Message() != nil {
				m = value.Message()
			}
		case fd.IsList() && fd.Message() != nil:
			m = m.Mutable(fd).List().AppendMutable().Message()
		case fd.IsList():
			m.Mutable(fd).List().Append(text)
		case fd.Message() != nil:
			m = m.Mutable(fd).Message()
		default:
			m.Set(fd, text)
		}
	}
	if p.inStruct != "" {
		p.fillStruct(m.Interface().(*structpb.Struct), s)
	}
	return spec
}

func (p stringPlace) fillStruct(in *structpb.Struct, s string) {
	switch p.inStruct {
	case ".KEY":
		in.Fields = map[string]*structpb.Value{s: structpb.NewBoolValue(true)}
	case ".a":
		in.Fields = map[string]*structpb.Value{"a": structpb.NewStringValue(s)}
	default:
		nested := structpb.NewStructValue(&structpb.Struct{Fields: map[string]*structpb.Value{"b": structpb.NewStringValue(s)}})
		in.Fields = map[string]*structpb.Value{"a": structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{nested}})}
	}
}

// entryOf returns a key and an empty value for a map.
func entryOf(m protoreflect.Message, fd protoreflect.FieldDescriptor) (protoreflect.MapKey, protoreflect.Value) {
	value := m.Mutable(fd).Map().NewValue()
	if fd.MapKey().Kind() == protoreflect.StringKind {
		return protoreflect.ValueOfString("k").MapKey(), value
	}
	return protoreflect.ValueOfUint32(1).MapKey(), value
}

// path returns the path of the string s in the object.
func (p stringPlace) path(s string) string {
	path := "spec"
	for _, step := range p.steps {
		path += "." + step.field.JSONName()
		switch {
		case step.key:
			path += fmt.Sprintf("[%q]", s)
		case step.field.IsMap() && step.field.MapKey().Kind() == protoreflect.StringKind:
			path += "[k]"
		case step.field.IsMap():
			path += "[1]"
		case step.field.IsList():
			path += "[0]"
		}
	}
	return path + strings.Replace(p.inStruct, "KEY", fmt.Sprintf("%q", s), 1)
}

func (p stringPlace) isKey() bool { return p.steps[len(p.steps)-1].key || p.inStruct == ".KEY" }

// finding is the expected finding for the string.
func (p stringPlace) finding(s, problem string) string {
	if p.isKey() {
		problem = "key " + problem
	}
	return fmt.Sprintf("%s: %s, is %q", p.path(s), problem, s)
}

func (p stringPlace) config(s string) configstore.Config {
	return configstore.Config{
		Meta: configstore.Meta{GroupVersionKind: p.schema.GroupVersionKind, Name: "a", Namespace: "ns"},
		Spec: p.build(s),
	}
}

const (
	notUTF8    = "must be UTF-8"
	notOneLine = "must not hold control characters"
)

// TestEveryStringIsUTF8 puts a string that is no UTF-8 into every place of every
// kind that takes a string. A store refuses it, and names object and field.
func TestEveryStringIsUTF8(t *testing.T) {
	t.Parallel()
	store := memory.Make(istio.Schemas())
	unchecked := memory.Make(istio.Schemas(), memory.Options{SkipValidation: true})
	const s = "a\xffb"
	places := stringPlaces()
	if len(places) < 400 {
		t.Fatalf("only %d places", len(places))
	}
	for _, p := range places {
		want := p.schema.GroupVersionKind.Kind + " ns/a is invalid: " + p.finding(s, notUTF8)
		if _, err := store.Create(p.config(s)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nwant %s", err, want)
		}
		if _, err := unchecked.Create(p.config(s)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("without validation: %v\nwant %s", err, want)
		}
	}
}

// TestEveryStringIsOneLine: there are no control characters in any string but those
// that are texts, and tabs in the values of headers.
func TestEveryStringIsOneLine(t *testing.T) {
	t.Parallel()
	for _, p := range stringPlaces() {
		for _, s := range []string{"a\nb", "a\rb", "a\x00b", "\x1b[2J", "a\x7f", "\tb", "é\n"} {
			rule := p.schema.Text(p.field())
			allowed := rule == configstore.TextAny || rule == configstore.TextHeaderValue && s == "\tb"
			want := p.finding(s, notOneLine)
			if _, violations := checked(p.schema, p.config(s)); slices.Contains(lines(violations), want) == allowed {
				t.Errorf("rule %d: %q, want (%v) %s", rule, lines(violations), !allowed, want)
			}
		}
		if _, violations := checked(p.schema, p.config("é")); slices.Contains(lines(violations), p.finding("é", notOneLine)) {
			t.Errorf("%s must not be é", p.path("é"))
		}
	}
}

// TestEveryUnknownPartIsSeen: a field that a message does not have and a number that an enum does not have are
// noticed at every place of every kind, because policies close for them.
func TestEveryUnknownPartIsSeen(t *testing.T) {
	t.Parallel()
	places := 0
	for _, schema := range istio.Schemas().All() {
		spec := schema.NewSpec()
		check := func(place protoreflect.FullName) {
			places++
			if got := configstore.Unread(spec); len(got) != 1 {
				t.Errorf("%s of %s: got %v, want one part that is not known", place, schema.GroupVersionKind.Kind, got)
			}
		}
		var visit func(m protoreflect.Message)
		visit = func(m protoreflect.Message) {
			configstore.MarkUnread(m, "later")
			check(m.Descriptor().FullName())
			m.SetUnknown(nil)
			for i := range m.Descriptor().Fields().Len() {
				fd := m.Descriptor().Fields().Get(i)
				content := fd
				if fd.IsMap() {
					content = fd.MapValue()
				}
				unknown := protoreflect.ValueOfEnum(12345)
				switch message := content.Message(); {
				case content.Enum() != nil && fd.IsList():
					m.Mutable(fd).List().Append(unknown)
					check(fd.FullName())
				case content.Enum() != nil:
					m.Set(fd, unknown)
					check(fd.FullName())
				case message == nil || strings.HasPrefix(string(message.FullName()), "google.protobuf."):
				case fd.IsMap():
					visit(m.Mutable(fd).Map().Mutable(fd.MapKey().Default().MapKey()).Message())
				case fd.IsList():
					visit(m.Mutable(fd).List().AppendMutable().Message())
				default:
					visit(m.Mutable(fd).Message())
				}
				m.Clear(fd)
			}
		}
		visit(spec.ProtoReflect())
	}
	if places < 300 {
		t.Errorf("%d places are too few", places)
	}
}

// textsStart and textsEnd enclose a generated part of docs/validation.md.
const (
	textsStart = "<!-- Generated by: go test ./configstore/istio -run TestTexts -update -->\n"
	textsEnd   = "<!-- End of what is generated. -->\n"
)

// TestTexts compares the list of the fields that may hold more than one line with
// docs/validation.md; -update writes it.
func TestTexts(t *testing.T) {
	kinds := map[string][]string{}
	holds := map[configstore.TextRule]string{configstore.TextAny: "any characters", configstore.TextHeaderValue: "tabs"}
	for _, p := range stringPlaces() {
		if what, ok := holds[p.schema.Text(p.field())]; ok {
			name := strings.Split(strings.TrimPrefix(string(p.field().FullName()), "istio."), ".")
			row := fmt.Sprintf("`%s` | %s", strings.Join(name[2:], "."), what)
			if kind := p.schema.GroupVersionKind.Kind; !slices.Contains(kinds[row], kind) {
				kinds[row] = append(kinds[row], kind)
			}
		}
	}
	var rows []string
	for row, of := range kinds {
		rows = append(rows, fmt.Sprintf("| %s | %s |\n", row, strings.Join(of, ", ")))
	}
	slices.Sort(rows)
	want := "\n| message and field | may hold | kinds |\n|---|---|---|\n" + strings.Join(rows, "") + "\n"
	file := filepath.Join("..", "..", "docs", "validation.md")
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, started := strings.Cut(string(page), textsStart)
	got, behind, ended := strings.Cut(rest, textsEnd)
	switch {
	case !started || !ended:
		t.Fatalf("%s has no place for the list", file)
	case got == want:
	case *update:
		if err := os.WriteFile(file, []byte(before+textsStart+want+textsEnd+behind), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s is out of date; run this test with -update", file)
	}
}
