// SPDX-License-Identifier: Apache-2.0

package serviceentry

import "slices"

// located is the members at an address, in no order. Nearly always it is one, which
// needs no slice.
type located struct {
	// first is nil if there are none.
	first *member
	more  []*member
}

func (l located) all(yield func(*member) bool) {
	if l.first == nil || !yield(l.first) {
		return
	}
	for _, m := range l.more {
		if !yield(m) {
			return
		}
	}
}

// locate adds a member at its addresses, or removes it.
func (b *batch) locate(m *member, present bool) {
	for _, a := range m.addresses() {
		a = addressText(a)
		l, ok := b.located[a]
		if !ok {
			// The batch changes a copy, which becomes the next list.
			l, _ = b.tables.addresses.Get(a)
			l.more = slices.Clone(l.more)
		}
		if present {
			l.add(m)
		} else {
			l.remove(m)
		}
		b.located[a] = l
	}
}

func (l *located) add(m *member) {
	if l.first == nil {
		l.first = m
	} else {
		l.more = append(l.more, m)
	}
}

func (l *located) remove(m *member) {
	last := len(l.more) - 1
	switch i := slices.Index(l.more, m); {
	case i >= 0:
		l.more = slices.Delete(l.more, i, i+1)
	case l.first == m && last >= 0:
		l.first, l.more = l.more[last], l.more[:last]
	case l.first == m:
		l.first = nil
	}
}
