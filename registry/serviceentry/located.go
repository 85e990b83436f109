// SPDX-License-Identifier: Apache-2.0

package serviceentry

import "slices"

// located is the contributions at an address, in no order. Nearly always it is one, which
// needs no slice.
type located struct {
	// first is nil if there are none.
	first *contribution
	more  []*contribution
}

// located returns the contributions at an address in its usual form.
func (t *tables) located(address string) located {
	var l located
	l.first, _ = t.addresses.Get(address)
	if t.more.Len() > 0 {
		l.more, _ = t.more.Get(address)
	}
	return l
}

// locate sets the contributions at an address.
func (t *tables) locate(address string, l located) {
	if l.first == nil {
		t.addresses.Delete(address)
	} else {
		t.addresses.Set(address, l.first, l.first.positionOf(address))
	}
	switch {
	case len(l.more) > 0:
		t.more.Set(address, l.more)
	case t.more.Len() > 0:
		t.more.Delete(address)
	}
}

func (l located) all(yield func(*contribution) bool) {
	if l.first == nil || !yield(l.first) {
		return
	}
	for _, m := range l.more {
		if !yield(m) {
			return
		}
	}
}

// locate adds a contribution at its addresses, or removes it.
func (b *batch) locate(m *contribution, present bool) {
	for _, a := range m.addresses() {
		a = addressText(a)
		l, ok := b.located[a]
		if !ok {
			// The batch changes a copy, which becomes the next list.
			l = b.tables.located(a)
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

func (l *located) add(m *contribution) {
	if l.first == nil {
		l.first = m
	} else {
		l.more = append(l.more, m)
	}
}

func (l *located) remove(m *contribution) {
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
