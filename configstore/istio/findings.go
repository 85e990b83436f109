// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/pilotkit/pilotkit/configstore"
)

// findings collects what is to be said of one object.
type findings struct {
	warnings   []configstore.Violation
	violations []configstore.Violation
}

// validator makes a Validator of the rules for one type of spec. Rules are given
// the field "spec", the object and its spec, which is never nil.
func validator[T proto.Message](rules func(spec *field, c configstore.Config, message T)) configstore.Validator {
	return func(c configstore.Config) (warnings, violations []configstore.Violation) {
		var out findings
		object := &field{out: &out, index: plainField}
		checkMetadata(object.child("metadata"), c)
		spec := object.child("spec")
		switch message, ok := c.Spec.(T); {
		case c.Spec == nil || ok && !message.ProtoReflect().IsValid():
			spec.refuse("is required")
		case !ok:
			var want T
			spec.refuse("must be a %s, is a %s",
				want.ProtoReflect().Descriptor().FullName(), c.Spec.ProtoReflect().Descriptor().FullName())
		default:
			rules(spec, c, message)
		}
		return out.warnings, out.violations
	}
}

// mark is a position in findings.
type mark struct{ warnings, violations int }

func (f *findings) mark() mark {
	return mark{warnings: len(f.warnings), violations: len(f.violations)}
}

// sortSince sorts by field what was found since a mark. Loops over maps need it
// to report the same findings in the same order every time; objects without
// findings then pay nothing for the order.
func (f *findings) sortSince(m mark) {
	byField := func(a, b configstore.Violation) int { return strings.Compare(a.Field, b.Field) }
	slices.SortStableFunc(f.warnings[m.warnings:], byField)
	slices.SortStableFunc(f.violations[m.violations:], byField)
}

// The values of field.index that are no positions.
const (
	plainField = -1
	mapEntry   = -2
)

// field is a place in an object. It points to the place around it and becomes
// text only when something is found there, so that the check of a valid object
// allocates nothing for its places.
type field struct {
	out *findings
	// parent is nil for the object itself, which has no name.
	parent *field
	name   string
	// index is a position in a list, plainField, or mapEntry for key.
	index int
	key   string
}

// child returns the field of that name.
func (f *field) child(name string) *field {
	return &field{out: f.out, parent: f, name: name, index: plainField}
}

// elem returns an element of the list of that name.
func (f *field) elem(name string, index int) *field {
	return &field{out: f.out, parent: f, name: name, index: index}
}

// entry returns the value that the map of that name has for a key.
func (f *field) entry(name, key string) *field {
	return &field{out: f.out, parent: f, name: name, index: mapEntry, key: key}
}

// String returns the path, for example "spec.endpoints[0].ports[http]".
func (f *field) String() string { return string(f.appendTo(nil)) }

// appendTo must not keep f: fields then stay on the stack.
func (f *field) appendTo(path []byte) []byte {
	if f.parent == nil {
		return path
	}
	path = f.parent.appendTo(path)
	if len(path) > 0 {
		path = append(path, '.')
	}
	path = append(path, f.name...)
	switch {
	case f.index >= 0:
		path = append(path, '[')
		path = strconv.AppendInt(path, int64(f.index), 10)
		path = append(path, ']')
	case f.index == mapEntry:
		path = append(path, '[')
		path = append(path, f.key...)
		path = append(path, ']')
	}
	return path
}

// refuse records a violation.
func (f *field) refuse(format string, args ...any) {
	f.out.violations = append(f.out.violations, f.violation(format, args))
}

// warn records a warning.
func (f *field) warn(format string, args ...any) {
	f.out.warnings = append(f.out.warnings, f.violation(format, args))
}

func (f *field) violation(format string, args []any) configstore.Violation {
	return configstore.Violation{Field: f.String(), Message: fmt.Sprintf(format, args...)}
}

// refuseNull records that an element of a list is null, which no list may hold.
func (f *field) refuseNull() { f.refuse("must not be null") }

// checkEnum refuses numbers that have no name: protobuf decodes them silently.
func checkEnum(at *field, value protoreflect.Enum) {
	values := value.Descriptor().Values()
	if values.ByNumber(value.Number()) != nil {
		return
	}
	names := make([]string, values.Len())
	for i := range names {
		names[i] = string(values.Get(i).Name())
	}
	at.refuse("must be one of %s, is %d", strings.Join(names, ", "), value.Number())
}

// repetitions tells which values were seen before. The zero value has seen
// none. Few values are compared one by one, which costs no allocation.
type repetitions[K comparable] struct {
	few       [8]K
	positions [8]int
	count     int
	// many holds the first position of every value, once there are more than
	// fit in few.
	many map[K]int
}

// add records that a value is at a position. If the value was added before, it
// returns the position of then, and true.
func (r *repetitions[K]) add(value K, position int) (first int, repeated bool) {
	if r.many == nil {
		for i := range r.count {
			if r.few[i] == value {
				return r.positions[i], true
			}
		}
		if r.count < len(r.few) {
			r.few[r.count], r.positions[r.count] = value, position
			r.count++
			return 0, false
		}
		r.many = make(map[K]int, 4*len(r.few))
		for i, v := range r.few {
			r.many[v] = r.positions[i]
		}
	}
	if first, repeated = r.many[value]; !repeated {
		r.many[value] = position
	}
	return first, repeated
}
