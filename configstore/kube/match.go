// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"fmt"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// identifyingFields returns the names of the fields that identify the elements of a list, the most
// specific ones first.
func identifyingFields() []protoreflect.Name {
	return []protoreflect.Name{"name", "id", "type", "key", "host", "address", "number", "port", "destination", "issuer", "from"}
}

// matching pairs the elements of a list with the previous elements.
type matching struct {
	old, next []protoreflect.Message
	// partner contains for each element of next the index of its partner in old, or -1.
	partner []int
	taken   []bool // the elements of old that have a partner
}

// matchItems returns for each element of next the index of its previous version in old, or -1.
// Equal elements match first, then elements in which one of identifyingFields is set and equal,
// then, if the lists have the same length, the remaining elements in order. Elements of old may be
// nil: an element that could not be decoded matches by its position only.
func matchItems(old, next []protoreflect.Message) []int {
	m := &matching{old: old, next: next, partner: make([]int, len(next)), taken: make([]bool, len(old))}
	for i := range m.partner {
		m.partner[i] = -1
	}
	if len(old) == 0 || len(next) == 0 {
		return m.partner
	}
	m.by(encoded)
	for _, name := range identifyingFields() {
		if fd := next[0].Descriptor().Fields().ByName(name); fd != nil && !fd.IsList() && !fd.IsMap() {
			m.by(func(item protoreflect.Message) (string, bool) { return fieldText(item, fd) })
		}
	}
	if len(old) == len(next) {
		m.by(func(protoreflect.Message) (string, bool) { return "", true })
	}
	return m.partner
}

// by pairs the elements without a partner whose keys are equal, in order.
func (m *matching) by(key func(protoreflect.Message) (string, bool)) {
	free := map[string][]int{}
	for i, item := range m.old {
		if !m.taken[i] {
			if k, ok := key(item); ok {
				free[k] = append(free[k], i)
			}
		}
	}
	for i, item := range m.next {
		if m.partner[i] >= 0 || len(free) == 0 {
			continue
		}
		if k, ok := key(item); ok && len(free[k]) > 0 {
			j := free[k][0]
			free[k] = free[k][1:]
			m.partner[i], m.taken[j] = j, true
		}
	}
}

// encoded returns the same text for equal messages.
func encoded(item protoreflect.Message) (text string, ok bool) {
	if item == nil {
		return "", false
	}
	data, err := proto.MarshalOptions{Deterministic: true, AllowPartial: true}.Marshal(item.Interface())
	return string(data), err == nil
}

// fieldText returns the same text for equal values of a field. ok is false if the field is not set.
func fieldText(item protoreflect.Message, fd protoreflect.FieldDescriptor) (text string, ok bool) {
	switch {
	case item == nil || !item.Has(fd):
		return "", false
	case fd.Message() != nil:
		return encoded(item.Get(fd).Message())
	default:
		return fmt.Sprint(item.Get(fd).Interface()), true
	}
}
