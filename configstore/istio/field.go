// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"strconv"

	"github.com/pilotkit/pilotkit/internal/excerpt"
)

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

// maxPathLength bounds the path of a finding.
const maxPathLength = 512

// String returns the path, for example "spec.endpoints[0].ports[http]".
func (f *field) String() string { return excerpt.CutTo(string(f.appendTo(nil)), maxPathLength) }

// appendTo must not keep f: fields then stay on the stack.
func (f *field) appendTo(path []byte) []byte {
	if f.parent == nil {
		return path
	}
	path = f.parent.appendTo(path)
	if len(path) > 0 {
		path = append(path, '.')
	}
	path = append(path, excerpt.Name(f.name)...)
	switch {
	case f.index >= 0:
		path = append(path, '[')
		path = strconv.AppendInt(path, int64(f.index), 10)
		path = append(path, ']')
	case f.index == mapEntry:
		path = append(path, '[')
		path = append(path, excerpt.Name(f.key)...)
		path = append(path, ']')
	}
	return path
}

// refuse records a violation.
func (f *field) refuse(format string, args ...any) { f.out.violations.add(f, format, args) }

// warn records a warning.
func (f *field) warn(format string, args ...any) { f.out.warnings.add(f, format, args) }
