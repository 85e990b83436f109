// SPDX-License-Identifier: Apache-2.0

package configstore

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/internal/excerpt"
)

// longestKind is the number of bytes of a group, version or kind that an error quotes.
const longestKind = 64

// UnknownKind returns the error for an object whose kind s does not have. It wraps ErrUnknownKind
// and contains the kind, and, if they are known, the versions of the kind or the kind that was
// probably meant. The spec matters if the kind is the zero value; it may be nil.
func (s Schemas) UnknownKind(kind GroupVersionKind, spec proto.Message) error {
	switch {
	case kind == GroupVersionKind{} && spec == nil:
		return fmt.Errorf("%w: none is given", ErrUnknownKind)
	case kind == GroupVersionKind{}:
		return fmt.Errorf("%w: none is given, and not exactly one has specs of type %T", ErrUnknownKind, spec)
	}
	for _, schema := range s.kinds() {
		if known := schema.GroupVersionKind; known.Group == kind.Group && known.Kind == kind.Kind {
			versions := append(slices.Clone(schema.Aliases), known.Version)
			slices.Sort(versions)
			return fmt.Errorf("%w %s: %s has the versions %s", ErrUnknownKind, kind.text(), known.Kind, strings.Join(versions, ", "))
		}
	}
	return fmt.Errorf("%w %s%s", ErrUnknownKind, kind.text(), s.meant(kind))
}

// text returns "group/version/Kind" without the empty parts.
func (k GroupVersionKind) text() string {
	parts := slices.DeleteFunc([]string{k.Group, k.Version, k.Kind}, func(s string) bool { return s == "" })
	for i := range parts {
		parts[i] = excerpt.CutTo(parts[i], longestKind)
	}
	return strings.Join(parts, "/")
}

// meant returns a question for the kind that was probably meant, or "".
func (s Schemas) meant(kind GroupVersionKind) string {
	for _, schema := range s.kinds() {
		switch known := schema.GroupVersionKind; {
		case !mistyped(kind.Kind, known.Kind):
		case kind.Group == known.Group || kind.Group == "" && kind.Version == "":
			return fmt.Sprintf(": did you mean %s?", known.Kind)
		case mistyped(kind.Group, known.Group) || related(kind.Group, known.Group):
			return fmt.Sprintf(": did you mean %s?", known.text())
		}
	}
	return ""
}

// related reports whether two groups have the same domain, as networking.istio.io and
// security.istio.io have.
func related(a, b string) bool {
	_, a, _ = strings.Cut(a, ".")
	_, b, _ = strings.Cut(b, ".")
	return a == b && strings.Contains(a, ".")
}

// mistyped reports whether a text is a known one but for its case and at most two edits.
func mistyped(text, known string) bool {
	const edits = 2
	if len(text) > len(known)+edits || len(known) <= edits {
		return false
	}
	return distance(strings.ToLower(text), strings.ToLower(known)) <= edits
}

// distance returns the number of bytes to insert, delete or replace that make b of a (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0]++
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(row[j]+1, row[j+1]+1, replaced)
		}
	}
	return row[len(b)]
}
