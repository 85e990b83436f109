// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"iter"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// WildcardName subscribes to everything.
const WildcardName = "*"

// NameList is a list of names that are not decoded yet.
type NameList struct {
	fields []byte
	// Count is the number of names. Wildcard means that the wildcard name is one of them.
	Count    int
	Wildcard bool
}

// add adds encoded fields, which it copies.
func (l *NameList) add(fields []byte) error {
	valid := true
	for name := range eachField(fields) {
		l.Count++
		valid = valid && utf8.Valid(name)
		l.Wildcard = l.Wildcard || string(name) == WildcardName
	}
	if !valid {
		return errRequest
	}
	l.fields = append(l.fields, fields...)
	return nil
}

// All yields the names, which must not be kept.
func (l *NameList) All() iter.Seq[[]byte] { return eachField(l.fields) }

// Decoded returns the names.
func (l *NameList) Decoded() []string {
	if l.Count == 0 {
		return nil
	}
	out := make([]string, 0, l.Count)
	for name := range l.All() {
		out = append(out, string(name))
	}
	return out
}

// eachField yields the values of fields that sameFields has found valid.
func eachField(fields []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for len(fields) > 0 {
			value, n := protowire.ConsumeBytes(fields[1:]) // the tag is a byte
			if fields = fields[1+n:]; !yield(value) {
				return
			}
		}
	}
}
