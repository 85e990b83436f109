// SPDX-License-Identifier: Apache-2.0

package istio_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
)

// TestNullElements adds a null to every list of messages in valid specs, one
// at a time: each is refused, at its place.
func TestNullElements(t *testing.T) {
	for _, schema := range istio.Schemas().All() {
		t.Run(schema.GroupVersionKind.Kind, func(t *testing.T) {
			for _, base := range specs(t, schema.GroupVersionKind) {
				testNullElements(t, schema, base)
			}
		})
	}
}

func testNullElements(t *testing.T, schema configstore.Schema, base proto.Message) {
	t.Helper()
	for i, path := range listPaths(base) {
		spec := proto.Clone(base)
		list := 0
		place := ""
		visitLists(spec.ProtoReflect(), "spec", func(_ string, l protoreflect.List) {
			if list == i {
				place = fmt.Sprintf("%s[%d]", path, l.Len())
				l.Append(protoreflect.ValueOfMessage(null(l.NewElement())))
			}
			list++
		})
		_, violations := schema.Validate(configstore.Config{
			Meta: configstore.Meta{GroupVersionKind: schema.GroupVersionKind, Name: "a", Namespace: "ns"},
			Spec: spec,
		})
		atPlace := func(v configstore.Violation) bool { return strings.HasPrefix(v.Field, place) }
		if !slices.ContainsFunc(violations, atPlace) {
			t.Errorf("a null at %s is accepted: %v", place, violations)
		}
	}
}

func listPaths(spec proto.Message) []string {
	var paths []string
	visitLists(spec.ProtoReflect(), "spec", func(path string, _ protoreflect.List) { paths = append(paths, path) })
	return paths
}

// visitLists calls visit for all lists of messages, in a fixed order. The content
// of google.protobuf messages is not for validators.
func visitLists(m protoreflect.Message, path string, visit func(path string, list protoreflect.List)) {
	if strings.HasPrefix(string(m.Descriptor().FullName()), "google.protobuf.") {
		return
	}
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		fd := fields.Get(i)
		at := path + "." + fd.JSONName()
		switch {
		case !m.Has(fd) || fd.Message() == nil:
		case fd.IsMap():
			if fd.MapValue().Message() == nil {
				continue
			}
			var keys []string
			m.Get(fd).Map().Range(func(key protoreflect.MapKey, _ protoreflect.Value) bool {
				keys = append(keys, key.String())
				return true
			})
			slices.Sort(keys)
			for _, key := range keys {
				m.Get(fd).Map().Range(func(k protoreflect.MapKey, value protoreflect.Value) bool {
					if k.String() == key {
						visitLists(value.Message(), at+"["+key+"]", visit)
					}
					return true
				})
			}
		case fd.IsList():
			list := m.Mutable(fd).List()
			for n := range list.Len() {
				visitLists(list.Get(n).Message(), fmt.Sprintf("%s[%d]", at, n), visit)
			}
			visit(at, list)
		default:
			visitLists(m.Mutable(fd).Message(), at, visit)
		}
	}
}
