// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/manifest"
	"github.com/pilotkit/pilotkit/internal/test/histories"
)

// samples returns the documents of testdata/kinds of one kind.
func samples(t *testing.T, kind configstore.GroupVersionKind) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "kinds", strings.ToLower(kind.Kind)+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// Every kind, as users write it, in every version that it may be written in.
func TestEveryKindInEveryVersion(t *testing.T) {
	schemas := istio.Schemas()
	if len(schemas.All()) != 15 {
		t.Errorf("%d kinds, want 15", len(schemas.All()))
	}
	for _, schema := range schemas.All() {
		kind := schema.GroupVersionKind
		t.Run(kind.Kind, func(t *testing.T) {
			text := samples(t, kind)
			want, err := manifest.ParseAll(schemas, []byte(text), manifest.Options{})
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range want {
				if c.GroupVersionKind != kind {
					t.Errorf("%s has kind %v", c.Name, c.GroupVersionKind)
				}
				checkRoundTrip(t, schemas, c, manifest.Options{})
				checkAgainstProtojson(t, schema, c)
			}
			for _, alias := range schema.Aliases {
				written := kind
				written.Version = alias
				aliased := strings.ReplaceAll(text, "\napiVersion: "+kind.APIVersion(), "\napiVersion: "+written.APIVersion())
				got, err := manifest.ParseAll(schemas, []byte(aliased), manifest.Options{})
				if err != nil {
					t.Fatalf("%s: %v", alias, err)
				}
				for i := range want {
					if !got[i].Equal(want[i]) {
						t.Errorf("%s as %s is %v, want %v", want[i].Name, alias, got[i], want[i])
					}
				}
			}
		})
	}
}

// checkAgainstProtojson compares our reading of a spec with that of protojson.
func checkAgainstProtojson(t *testing.T, schema configstore.Schema, c configstore.Config) {
	t.Helper()
	text, err := manifest.MarshalJSON(c)
	if err != nil {
		t.Fatal(err)
	}
	var object struct{ Spec, Status json.RawMessage }
	if err := json.Unmarshal(text, &object); err != nil {
		t.Fatal(err)
	}
	compare := func(raw json.RawMessage, got, want proto.Message) {
		t.Helper()
		if err := protojson.Unmarshal(raw, want); err != nil {
			t.Fatalf("%v in %s", err, raw)
		}
		if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
			t.Errorf("%s (-protojson +ours):\n%s", c.Name, diff)
		}
	}
	compare(object.Spec, c.Spec, schema.NewSpec())
	if c.Status != nil {
		compare(object.Status, c.Status, schema.NewStatus())
	}
}

// Messages with every field there is, and odd values in them, survive.
func TestRandomObjectsSurvive(t *testing.T) {
	schemas := istio.Schemas()
	for _, schema := range schemas.All() {
		t.Run(schema.GroupVersionKind.Kind, func(t *testing.T) {
			for _, seed := range histories.Seeds(t, 60) {
				g := generator{Rand: rand.New(rand.NewPCG(seed, 1))}
				c := configstore.Config{Meta: g.meta(schema.GroupVersionKind), Spec: schema.NewSpec()}
				g.fill(c.Spec.ProtoReflect(), 6)
				if g.IntN(2) == 0 {
					c.Status = schema.NewStatus()
					g.fill(c.Status.ProtoReflect(), 4)
				}
				checkRoundTrip(t, schemas, c, manifest.Options{})
				checkAgainstProtojson(t, schema, c)
			}
		})
	}
}

// generator makes random messages.
type generator struct{ *rand.Rand }

func (g generator) meta(kind configstore.GroupVersionKind) configstore.Meta {
	m := configstore.Meta{
		GroupVersionKind: kind, Name: "n" + g.text(), Namespace: g.text(), UID: g.text(), ResourceVersion: g.text(),
		Generation: g.Int64(), CreationTimestamp: time.Unix(g.Int64N(1e10), g.Int64N(1e9)),
		Labels: map[string]string{}, Annotations: map[string]string{},
	}
	for range g.IntN(4) {
		m.Labels[g.text()] = g.text()
		m.Annotations[g.text()] = g.text()
		m.OwnerReferences = append(m.OwnerReferences, configstore.OwnerReference{
			APIVersion: g.text(), Kind: g.text(), Name: g.text(), UID: g.text(), Controller: g.IntN(2) == 0, BlockOwnerDeletion: g.IntN(2) == 0,
		})
	}
	return m
}

// text returns strings that YAML and its readers find hard.
func (g generator) text() string {
	words := []string{
		"", "a", "yes", "y", "Off", "null", "~", "1", "010", "1e3", "-0", "0x1f", "12:30", "2024-01-01", "1_0", ".5", ".inf", "1.2.3.4",
		"10.0.0.0/8", "5s", "true", "<<", "=", "---", "...", "- a", "a: b", "a:", "a #b", "#a", " a", "a ", "*a", "&a", "!a", "|", ">", "%a", "@a", "`a",
		"\"a\"", "'a'", "{a}", "[a]", "a,b", "a\nb", "a\nb\n", "\na", "a\n\n", "a\n  b\n\n c\n", " a\nb", "a \nb", "a\tb", "\ta\nb", "a\r\nb", "a\x00b", "\x7f\u0085\u2028\ufeff",
		"é😀", "a\n---\nb", "a\n# b\n", "\\", "a\\nb", "?", "? a", ":", "::", "1.10", "é\nü", strings.Repeat("long ", 300), "\n", "\n\n", " ", "\ufffe", "a\n\tb",
	}
	return words[g.IntN(len(words))]
}

func (g generator) fill(m protoreflect.Message, depth int) {
	switch m.Descriptor().FullName() {
	case "google.protobuf.Duration":
		m.Set(m.Descriptor().Fields().ByName("seconds"), protoreflect.ValueOfInt64(g.Int64N(315576000000)))
		m.Set(m.Descriptor().Fields().ByName("nanos"), protoreflect.ValueOfInt32(g.Int32N(1e9)))
		return
	case "google.protobuf.Timestamp":
		m.Set(m.Descriptor().Fields().ByName("seconds"), protoreflect.ValueOfInt64(g.Int64N(1e10)))
		return
	case "google.protobuf.Any", "google.protobuf.FieldMask":
		return
	case "google.protobuf.Value":
		// A Value without a kind has no JSON form.
		m.Set(m.Descriptor().Fields().ByName("string_value"), protoreflect.ValueOfString(g.text()))
	}
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		fd := fields.Get(i)
		if g.IntN(3) == 0 || fd.Message() != nil && depth == 0 || fd.IsMap() && fd.MapValue().Message() != nil && depth == 0 {
			continue
		}
		switch {
		case fd.IsList():
			list := m.Mutable(fd).List()
			for range g.IntN(3) {
				list.Append(g.value(fd, list.NewElement, depth))
			}
		case fd.IsMap():
			values := m.Mutable(fd).Map()
			for range g.IntN(3) {
				key := g.value(fd.MapKey(), nil, depth).MapKey()
				values.Set(key, g.value(fd.MapValue(), values.NewValue, depth))
			}
		default:
			m.Set(fd, g.value(fd, func() protoreflect.Value { return m.NewField(fd) }, depth))
		}
	}
}

func (g generator) value(fd protoreflect.FieldDescriptor, empty func() protoreflect.Value, depth int) protoreflect.Value {
	switch fd.Kind() {
	case protoreflect.MessageKind:
		v := empty()
		g.fill(v.Message(), depth-1)
		return v
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(g.text())
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes([]byte(g.text()))
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(g.IntN(2) == 0)
	case protoreflect.EnumKind:
		values := fd.Enum().Values()
		return protoreflect.ValueOfEnum(values.Get(g.IntN(values.Len())).Number())
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		return protoreflect.ValueOfInt32(int32(g.Uint32()))
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		return protoreflect.ValueOfInt64(int64(g.Uint64()))
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return protoreflect.ValueOfUint32(g.Uint32())
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return protoreflect.ValueOfUint64(g.Uint64())
	case protoreflect.FloatKind:
		return protoreflect.ValueOfFloat32(float32(g.NormFloat64() * 1e20))
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64(g.NormFloat64() * 1e-30)
	default:
		panic("no generator for " + fd.Kind().String())
	}
}
