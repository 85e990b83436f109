// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"strconv"

	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/excerpt"
)

// findings collects the warnings and violations of one object.
type findings struct {
	warnings, violations findingList
	// programs is the size of the programs of all regular expressions that were checked.
	programs int
}

// findingList keeps configstore.MaxViolations findings and counts the others, so
// that the memory and the text that an object costs have a bound.
type findingList struct {
	kept []configstore.Violation
	more int
}

func (l *findingList) add(at *field, format string, args []any) {
	if len(l.kept) >= configstore.MaxViolations {
		l.more++
		return
	}
	l.kept = append(l.kept, configstore.Violation{Field: at.String(), Message: excerpt.Sprintf(format, args...)})
}

// list returns the findings. If some were dropped, the last one reports their number.
func (l *findingList) list() []configstore.Violation {
	if l.more == 0 {
		return l.kept
	}
	return append(l.kept, configstore.Violation{Message: "and " + strconv.Itoa(l.more) + " more"})
}

// count is how many findings there have been, kept or not.
func (l *findingList) count() int { return len(l.kept) + l.more }

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
		return out.warnings.list(), out.violations.list()
	}
}

// mark is how many findings there have been.
type mark struct{ warnings, violations int }

func (f *findings) mark() mark {
	return mark{warnings: f.warnings.count(), violations: f.violations.count()}
}
