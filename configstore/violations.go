// SPDX-License-Identifier: Apache-2.0

package configstore

import (
	"strconv"

	"github.com/pilotkit/pilotkit/internal/excerpt"
)

// MaxViolations is how many violations, and how many warnings, Schema.Check lists
// of one object. If there are more, one last element says how many.
const MaxViolations = 100

// The limits of what Schema.Check hands on of the words of a Validator.
const (
	maxMessageLength = 4096
	// maxErrorViolations is how many violations ValidationError.Error tells.
	maxErrorViolations = 20
)

// violations collects at most MaxViolations.
type violations struct {
	kept []Violation
	more int
}

// add asks for the violation only if it is kept.
func (v *violations) add(violation func() Violation) {
	if len(v.kept) == MaxViolations {
		v.more++
		return
	}
	v.kept = append(v.kept, violation())
}

func (v *violations) list() []Violation {
	if v.more == 0 {
		return v.kept
	}
	return append(v.kept, moreViolations(v.more))
}

func moreViolations(count int) Violation {
	return Violation{Message: "and " + strconv.Itoa(count) + " more"}
}

// bounded returns a list of bounded size: validators of hosts may list, and quote,
// as much as they like.
func bounded(list []Violation) []Violation {
	fits := len(list) <= MaxViolations+1 // one may say how many more there are
	for _, v := range list {
		fits = fits && len(v.Field) <= maxMessageLength && len(v.Message) <= maxMessageLength
	}
	if fits {
		return list
	}
	out := make([]Violation, 0, MaxViolations+1)
	for i, v := range list {
		if i == MaxViolations {
			return append(out, moreViolations(len(list)-i))
		}
		out = append(out, Violation{
			Field:   excerpt.CutTo(v.Field, maxMessageLength),
			Message: excerpt.CutTo(v.Message, maxMessageLength),
		})
	}
	return out
}
