// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"slices"
	"strings"
)

// subscribe makes a subscription one to some names, which are sorted, and
// perhaps to everything. It returns a selection that has to be prepared, or nil.
// The caller has seen to it that sent has nothing that is not subscribed.
func (c *cache) subscribe(s *subscription, wildcard bool, topics []*topic) *selection {
	view := s.conn.view
	key := keyOf(view, s.typeURL, wildcard, topics)
	old := s.selection
	if old != nil && old.selectionKey == key && slices.Equal(old.topics, topics) {
		return nil
	}
	if found := c.selection(key, topics); found != nil {
		found.adopt(s, old, c)
		return nil
	}
	if old != nil && len(old.subscribers) == 1 && old.view == view && old.wildcard == wildcard && old.snapshot != nil {
		c.rename(old, key, topics)
		return nil
	}
	made := &selection{selectionKey: key, topics: topics}
	t := c.index.of(s.typeURL)
	t.add(made, topics)
	if wildcard {
		t.wildcards = append(t.wildcards, made)
	}
	c.selections[key] = append(c.selections[key], made)
	made.adopt(s, old, c)
	if !c.ready || !view.ready {
		view.waiting = append(view.waiting, made)
		return nil
	}
	return made
}

// adopt moves a subscription from one selection to another.
func (s *selection) adopt(sub *subscription, old *selection, c *cache) {
	if old != nil {
		c.unsubscribe(sub)
	}
	s.join(sub)
}

func (c *cache) selection(key selectionKey, topics []*topic) *selection {
	for _, s := range c.selections[key] {
		if slices.Equal(s.topics, topics) {
			return s
		}
	}
	return nil
}

// unsubscribe takes a subscription out of its selection, which ends with its last
// one.
func (c *cache) unsubscribe(sub *subscription) {
	s := sub.selection
	if s == nil {
		return
	}
	s.leave(sub)
	if len(s.subscribers) > 0 {
		return
	}
	t := c.index.of(s.typeURL)
	t.remove(s, s.topics)
	if s.wildcard {
		t.wildcards = removed(t.wildcards, s)
	}
	s.view.waiting, c.unprepared = removed(s.view.waiting, s), removed(c.unprepared, s)
	c.forgetSelection(s)
}

func (c *cache) forgetSelection(s *selection) {
	if c.selections[s.selectionKey] = removed(c.selections[s.selectionKey], s); len(c.selections[s.selectionKey]) == 0 {
		delete(c.selections, s.selectionKey)
	}
}

// rename changes the names of a selection with one subscription, at the cost of
// the names that come and go and of a walk over the others.
func (c *cache) rename(s *selection, key selectionKey, topics []*topic) {
	c.forgetSelection(s)
	t := c.index.of(s.typeURL)
	var gone []edit
	var left, come []*topic
	old := s.topics
	for _, p := range topics {
		for len(old) > 0 && old[0].name < p.name {
			left, old = append(left, old[0]), old[1:]
		}
		if len(old) > 0 && old[0] == p {
			old = old[1:]
			continue
		}
		come = append(come, p)
	}
	left = append(left, old...)
	for _, p := range left {
		if s.wildcard {
			s.dirty = append(s.dirty, p.name)
		} else {
			gone = append(gone, edit{name: p.name})
		}
	}
	for _, p := range come {
		s.dirty = append(s.dirty, p.name)
	}
	t.add(s, come)
	t.remove(s, left)
	s.selectionKey, s.topics = key, topics
	s.differences, s.first = differences{}, nil // they have answers about names
	c.selections[key] = append(c.selections[key], s)
	s.publish(s.snapshot.with(gone))
}

// sortTopics sorts the topics of names and drops those that occur twice.
func sortTopics(topics []*topic) []*topic {
	byName := func(a, b *topic) int { return strings.Compare(a.name, b.name) }
	if !slices.IsSortedFunc(topics, byName) {
		slices.SortFunc(topics, byName)
	}
	return slices.Compact(topics)
}

// prepare makes the first snapshots of selections and answers those who wait for
// them. It is called without the lock: the work for a selection is the same
// the goroutine that asks for it first, and no other one waits for it.
func (c *cache) prepare(list []*selection) {
	if len(list) == 0 {
		return
	}
	type job struct {
		*selection
		from   source
		topics []*topic
		made   *snapshot
	}
	jobs := make([]job, 0, len(list))
	c.locked(func() {
		for _, s := range list {
			// What changes from here on is dirty.
			s.dirty = nil
			jobs = append(jobs, job{selection: s, from: c.source(s.view), topics: s.topics})
		}
	})
	for i, j := range jobs {
		jobs[i].made = j.prepare(j.from, j.topics)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	touched := make(map[*connection]struct{})
	for _, j := range jobs {
		if j.made == nil {
			if len(j.subscribers) > 0 {
				c.unprepared = append(c.unprepared, j.selection)
			}
			continue
		}
		j.publish(j.made)
		j.refresh(c.source(j.view))
		for _, sub := range j.subscribers {
			touched[sub.conn] = struct{}{}
		}
	}
	for conn := range touched {
		conn.flush()
	}
	c.progressed()
}
