// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

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
	if f.mark() == m {
		return
	}
	byField := func(a, b configstore.Violation) int { return strings.Compare(a.Field, b.Field) }
	slices.SortStableFunc(f.warnings[m.warnings:], byField)
	slices.SortStableFunc(f.violations[m.violations:], byField)
}
