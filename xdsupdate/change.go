// SPDX-License-Identifier: Apache-2.0

package xdsupdate

import (
	"slices"

	"github.com/pilotkit/pilotkit/internal/cow"
	"github.com/pilotkit/pilotkit/registry"
)

// sequence is a shard's endpoints for a service, in the order of
// registry.CompareEndpoints. Endpoints with equal keys, even equal endpoints,
// may be in it many times.
type sequence = cow.Sorted[*registry.Endpoint]

// change is the effect of an update on a sequence.
type change struct {
	before, after sequence
	// removed and added are what proxies may see: endpoints that are replaced by
	// an unchanged one are in neither. An endpoint that is replaced by another
	// one of the same key is in both.
	removed, added []*registry.Endpoint
	// same: before and after hold the same pointers.
	same bool
}

// changeList returns the change to a complete list, which it keeps. A list that
// is not sorted is sorted first.
func changeList(before sequence, list []*registry.Endpoint) change {
	c := change{before: before}
	if before.Len() == 0 {
		if !slices.IsSortedFunc(list, registry.CompareEndpoints) {
			list = sorted(list)
		}
		c.after, c.added, c.same = cow.Adopt(list), list, len(list) == 0
		return c
	}
	if !c.walk(list) {
		list = sorted(list)
		c = change{before: before}
		c.walk(list)
	}
	if c.after = before; !c.same {
		c.after = cow.Adopt(list)
	}
	return c
}

// walk compares before and the list element by element and records the differences. It returns
// false if the list is not sorted. Two adjacent matched elements need no check, because before is
// sorted.
func (c *change) walk(list []*registry.Endpoint) (ok bool) {
	var m matcher
	next, matched := 0, true // list[:next] is done; matched: its last element, if any, has a match
	c.same = c.before.Len() == len(list)
	for chunk := range c.before.Chunks() {
		for i := 0; i < len(chunk); {
			if n, same := m.run(chunk[i:], list[next:]); n > 0 {
				if !matched && !inOrder(list, next) {
					return false
				}
				c.same = c.same && same
				i, next, matched = i+n, next+n, true
				continue
			}
			order := -1
			if next < len(list) {
				order = registry.CompareEndpointKeys(chunk[i], list[next])
			}
			if order >= 0 {
				if !inOrder(list, next) {
					return false
				}
				c.added, matched = push(c.added, list[next], len(list)-next), false
				next++
			}
			if order <= 0 {
				c.removed = push(c.removed, chunk[i], len(chunk)-i)
				i++
			}
		}
	}
	for ; next < len(list); next++ {
		if !inOrder(list, next) {
			return false
		}
		c.added = push(c.added, list[next], len(list)-next)
	}
	c.same = c.same && len(c.added)+len(c.removed) == 0
	return true
}

// push appends to a list that may get more-1 further elements. It allocates the first few at once.
func push(list []*registry.Endpoint, e *registry.Endpoint, more int) []*registry.Endpoint {
	if list == nil {
		list = make([]*registry.Endpoint, 0, min(more, 8))
	}
	return append(list, e)
}

// inOrder reports whether an element is not less than the one before it.
func inOrder(list []*registry.Endpoint, i int) bool {
	return i == 0 || registry.CompareEndpoints(list[i-1], list[i]) <= 0
}

func sorted(list []*registry.Endpoint) []*registry.Endpoint {
	return slices.SortedStableFunc(slices.Values(list), registry.CompareEndpoints)
}

// changeSome returns the change that some replacements make.
func changeSome(before sequence, changes []EndpointChange) change {
	c := change{before: before}
	editor := before.Edit(len(changes))
	for _, r := range changes {
		c.apply(editor, r)
	}
	c.after = editor.Sorted()
	c.same = len(c.removed)+len(c.added) == 0
	return c
}

// apply makes one replacement. An old endpoint that is not there by its pointer
// is looked for by its content, and if there is none like it, it is not missed.
func (c *change) apply(s *cow.Editor[*registry.Endpoint], r EndpointChange) {
	switch {
	case r.Old == r.New:
		return
	case r.Old == nil:
	case r.New != nil && s.Replace(registry.CompareEndpoints, r.Old, r.New, identical):
		c.removed, c.added = append(c.removed, r.Old), append(c.added, r.New)
		return
	case s.Delete(registry.CompareEndpoints, r.Old, identical),
		s.Delete(registry.CompareEndpointKeys, r.Old, identical),
		s.Delete(registry.CompareEndpointKeys, r.Old, new(matcher).unchanged):
		c.removed = append(c.removed, r.Old)
	}
	if r.New != nil {
		s.Insert(registry.CompareEndpoints, r.New)
		c.added = append(c.added, r.New)
	}
}

// pushes decides whether a push is needed, by the rules of Istio 1.30:
// when the shard had no endpoints before, when an endpoint of a known key
// changed or went, and when one of a new key came that proxies want to know of.
// It is not called for an empty list.
func (c *change) pushes() bool {
	switch {
	case c.before.Len() == 0:
		return true
	case len(c.removed) == 0 && slices.ContainsFunc(c.added, wanted):
		return true
	case len(c.added) == 0 && len(c.removed) > 0:
		return true
	case len(c.removed) == 1 && len(c.added) == 1:
		return !new(matcher).unchanged(c.removed[0], c.added[0])
	}
	return slices.ContainsFunc(c.removed, c.differsAt) || slices.ContainsFunc(c.added, c.differsAt)
}

// differsAt decides for the endpoints with the key of e.
func (c *change) differsAt(e *registry.Endpoint) bool {
	var buffers [2][4]*registry.Endpoint
	before, after := buffers[0][:0], buffers[1][:0]
	for f := range c.before.Matching(registry.CompareEndpointKeys, e) {
		before = append(before, f)
	}
	for f := range c.after.Matching(registry.CompareEndpointKeys, e) {
		after = append(after, f)
	}
	var m matcher
	switch {
	case len(before) == 0:
		return slices.ContainsFunc(after, wanted)
	case len(before) != len(after):
		return true
	}
	for _, f := range before {
		i := slices.IndexFunc(after, func(g *registry.Endpoint) bool { return m.unchanged(f, g) })
		if i < 0 {
			return true
		}
		after = slices.Delete(after, i, i+1)
	}
	return false
}

// wanted reports whether proxies want to know of an endpoint that is new.
func wanted(e *registry.Endpoint) bool {
	return e.HealthStatus != registry.UnHealthy || e.Attributes().SendUnhealthyEndpoints
}
