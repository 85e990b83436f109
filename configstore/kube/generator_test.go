// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/structpb"
)

// generator makes random messages and changes them.
type generator struct {
	*rand.Rand
	last int // of the values that are different from all others
	// marks contains the unknown field of each message, and former the encoding of each as it was
	// stored.
	marks, former map[proto.Message]string
	// reordered are the lists with added, removed or moved elements, and edited the lists with a
	// changed element. A list is not both, because its elements could then be matched only by name.
	reordered, edited []listKey
}

// listKey is a list, as a field of a message.
type listKey struct {
	in    proto.Message
	field protoreflect.FieldNumber
}

func (g *generator) unique() int { g.last++; return g.last }

// isLeaf reports whether all of a message is known.
func isLeaf(md protoreflect.MessageDescriptor) bool {
	return md.FullName().Parent() == "google.protobuf"
}

// fill sets about half of the fields.
func (g *generator) fill(m protoreflect.Message, depth int) {
	switch leaf := m.Interface().(type) {
	case *structpb.Struct:
		leaf.Fields = map[string]*structpb.Value{"known": structpb.NewNumberValue(float64(g.unique()))}
		return
	case *structpb.Value:
		leaf.Kind = &structpb.Value_NumberValue{NumberValue: float64(g.unique())}
		return
	}
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		fd := fields.Get(i)
		if g.IntN(2) == 0 || fd.Message() != nil && depth == 0 {
			continue
		}
		if oneof := fd.ContainingOneof(); oneof == nil || m.WhichOneof(oneof) == nil {
			g.set(m, fd, depth)
		}
	}
}

// set gives a field a value.
func (g *generator) set(m protoreflect.Message, fd protoreflect.FieldDescriptor, depth int) {
	switch {
	case fd.IsMap():
		values := m.Mutable(fd).Map()
		for range 1 + g.IntN(2) {
			key := protoreflect.ValueOfString(fmt.Sprint("k", g.unique())).MapKey()
			if fd.MapKey().Kind() != protoreflect.StringKind {
				key = g.scalar(fd.MapKey()).MapKey()
			}
			if fd.MapValue().Message() == nil {
				values.Set(key, g.scalar(fd.MapValue()))
				continue
			}
			g.fill(values.Mutable(key).Message(), depth-1)
		}
	case fd.IsList():
		list := m.Mutable(fd).List()
		for range 1 + g.IntN(3) {
			g.append(list, fd, depth)
		}
	case fd.Message() != nil:
		g.fill(m.Mutable(fd).Message(), depth-1)
	default:
		m.Set(fd, g.scalar(fd))
	}
}

func (g *generator) append(list protoreflect.List, fd protoreflect.FieldDescriptor, depth int) {
	if fd.Message() == nil {
		list.Append(g.scalar(fd))
		return
	}
	g.fill(list.AppendMutable().Message(), depth-1)
}

func (g *generator) scalar(fd protoreflect.FieldDescriptor) protoreflect.Value {
	n := g.unique()
	switch fd.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(n%2 == 0)
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(fd.Enum().Values().Get(n % fd.Enum().Values().Len()).Number())
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(fmt.Sprint("s", n))
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes([]byte(fmt.Sprint("s", n)))
	case protoreflect.FloatKind:
		return protoreflect.ValueOfFloat32(float32(n))
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64(float64(n))
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		return protoreflect.ValueOfInt32(int32(n))
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return protoreflect.ValueOfUint32(uint32(n))
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return protoreflect.ValueOfUint64(uint64(n))
	default:
		return protoreflect.ValueOfInt64(int64(n))
	}
}

// each calls f with the messages that a message directly holds, with the place of
// each in the text, and the list that it is in, if it is.
func each(m protoreflect.Message, text map[string]any, f func(child protoreflect.Message, text any, in *listKey)) {
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		part := text[fd.JSONName()]
		switch {
		case fd.IsMap():
			if fd.MapValue().Message() != nil {
				object, _ := part.(map[string]any)
				v.Map().Range(func(key protoreflect.MapKey, v protoreflect.Value) bool {
					f(v.Message(), object[key.String()], nil)
					return true
				})
			}
		case fd.Message() == nil:
		case fd.IsList():
			items, _ := part.([]any)
			for i := range v.List().Len() {
				var item any
				if items != nil {
					item = items[i]
				}
				f(v.List().Get(i).Message(), item, &listKey{m.Interface(), fd.Number()})
			}
		default:
			f(v.Message(), part, nil)
		}
		return true
	})
}

// mark returns the text of a message with unknown fields in about half of the
// messages that it consists of.
func (g *generator) mark(t *testing.T, m proto.Message) json.RawMessage {
	t.Helper()
	data, err := protojson.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var text map[string]any
	if err := json.Unmarshal(data, &text); err != nil {
		t.Fatal(err)
	}
	var walk func(m protoreflect.Message, text any, _ *listKey)
	walk = func(m protoreflect.Message, text any, _ *listKey) {
		object, ok := text.(map[string]any)
		if !ok || isLeaf(m.Descriptor()) {
			return
		}
		g.former[m.Interface()] = encoding(m)
		each(m, object, walk)
		if g.IntN(2) == 0 {
			mark := fmt.Sprintf("mark-%d-", g.unique())
			g.marks[m.Interface()] = mark
			object[fmt.Sprint("future", g.IntN(3))] = []any{mark, map[string]any{"name": nil, "hosts": 1}, []any{mark, mark}}[g.IntN(2)]
			if g.IntN(3) == 0 {
				object["further"] = []any{map[string]any{"name": "x"}}
			}
		}
	}
	walk(m.ProtoReflect(), text, nil)
	g.anyMark(text)
	if data, err = json.Marshal(text); err != nil {
		t.Fatal(err)
	}
	return data
}

// anyMark drops the marks of unknown fields that contain none.
func (g *generator) anyMark(text map[string]any) {
	data, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	there := marks.FindAllString(string(data), -1)
	for m, mark := range g.marks {
		if !slices.Contains(there, mark) {
			delete(g.marks, m)
		}
	}
}

func encoding(m protoreflect.Message) string {
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(m.Interface())
	if err != nil {
		panic(err)
	}
	return string(data)
}

// change changes one thing, somewhere.
func (g *generator) change(m protoreflect.Message) {
	var lists []listKey // the lists that m is in
	for {
		var children []protoreflect.Message
		var within []*listKey
		each(m, nil, func(child protoreflect.Message, _ any, in *listKey) {
			if !isLeaf(child.Descriptor()) && (in == nil || !slices.Contains(g.reordered, *in)) {
				children, within = append(children, child), append(within, in)
			}
		})
		if len(children) == 0 || g.IntN(4) == 0 {
			break
		}
		i := g.IntN(len(children))
		if m = children[i]; within[i] != nil {
			lists = append(lists, *within[i])
		}
	}
	fields := m.Descriptor().Fields()
	if fields.Len() == 0 {
		return
	}
	fd := fields.Get(g.IntN(fields.Len()))
	switch {
	case fd.IsList() && fd.Message() != nil && m.Has(fd) && g.IntN(4) > 0:
		key := listKey{m.Interface(), fd.Number()}
		if slices.Contains(g.edited, key) || slices.Contains(g.reordered, key) {
			return
		}
		g.reordered = append(g.reordered, key)
		g.reorder(m.Mutable(fd).List(), fd)
	case m.Has(fd) && g.IntN(3) == 0:
		m.Clear(fd)
	case fd.IsList() && m.Has(fd), fd.Message() != nil && m.Has(fd) && !fd.IsMap():
		return
	default:
		g.set(m, fd, 2)
	}
	g.edited = append(g.edited, lists...)
}

// reorder adds, removes or moves elements of a list.
func (g *generator) reorder(list protoreflect.List, fd protoreflect.FieldDescriptor) {
	switch n := list.Len(); g.IntN(3) {
	case 0:
		g.append(list, fd, 2)
		g.shuffle(list)
	case 1:
		g.shuffle(list)
		if n > 1 { // Without elements there is no list.
			list.Truncate(n - 1)
		}
	default:
		g.shuffle(list)
	}
}

func (g *generator) shuffle(list protoreflect.List) {
	g.Shuffle(list.Len(), func(i, j int) {
		a, b := list.Get(i), list.Get(j)
		list.Set(i, b)
		list.Set(j, a)
	})
}

// ambiguous reports whether an element of a list equals the former state of another one, so that
// they cannot be distinguished.
func (g *generator) ambiguous(m protoreflect.Message) bool {
	found := false
	was := map[string]int{}
	for _, text := range g.former {
		was[text]++
	}
	each(m, nil, func(child protoreflect.Message, _ any, in *listKey) {
		if isLeaf(child.Descriptor()) {
			return
		}
		if in != nil {
			now, before := encoding(child), g.former[child.Interface()]
			_, stored := g.former[child.Interface()]
			if n := was[now]; stored && now == before && n > 1 || (!stored || now != before) && n > 0 {
				found = true
			}
		}
		found = found || g.ambiguous(child)
	})
	return found
}

// expected returns the marks of the present messages, sorted.
func (g *generator) expected(m protoreflect.Message) []string {
	var out []string
	if mark, ok := g.marks[m.Interface()]; ok {
		out = append(out, mark)
	}
	each(m, nil, func(child protoreflect.Message, _ any, _ *listKey) { out = append(out, g.expected(child)...) })
	slices.Sort(out)
	return out
}
