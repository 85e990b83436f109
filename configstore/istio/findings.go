// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/excerpt"
)

// findings collects the warnings and violations of one object.
type findings struct {
	warnings, violations findingList
	// inMap: a loop over a map is in progress.
	inMap bool
	// programs is the size of the programs of all regular expressions that were checked.
	programs int
}

// findingList keeps configstore.MaxViolations findings and counts the others, so
// that the memory and the text that an object costs have a bound.
type findingList struct {
	kept []configstore.Violation
	more int
	// ordered is how many of kept were found before the loop over a map that is in
	// progress. Which of the others are kept is known when they are sorted.
	ordered int
}

func (l *findingList) add(at *field, format string, args []any) {
	switch {
	case !at.out.inMap && len(l.kept) >= configstore.MaxViolations:
		l.more++
		return
	case at.out.inMap && len(l.kept) >= l.ordered+2*configstore.MaxViolations:
		l.sort(l.ordered + configstore.MaxViolations)
	}
	l.kept = append(l.kept, configstore.Violation{Field: at.String(), Message: excerpt.Sprintf(format, args...)})
}

// sort sorts the findings of a loop over a map and keeps them up to end.
func (l *findingList) sort(end int) {
	slices.SortFunc(l.kept[l.ordered:], func(a, b configstore.Violation) int {
		return cmp.Or(strings.Compare(a.Field, b.Field), strings.Compare(a.Message, b.Message))
	})
	if len(l.kept) > end {
		l.more += len(l.kept) - end
		l.kept = l.kept[:end]
	}
}

// beginMap must be called before a loop over a map, which has no order, and endMap after it. endMap
// sorts the findings of the loop by field, so that the same object has the same findings in the
// same order every time, while objects without findings do not pay for the order. In nested loops
// only the outer one sorts.
func (f *findings) beginMap() (outer bool) {
	if f.inMap {
		return false
	}
	f.inMap = true
	f.warnings.ordered, f.violations.ordered = len(f.warnings.kept), len(f.violations.kept)
	return true
}

func (f *findings) endMap(outer bool) {
	if outer {
		f.inMap = false
		f.warnings.sort(configstore.MaxViolations)
		f.violations.sort(configstore.MaxViolations)
	}
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
