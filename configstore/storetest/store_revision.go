// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"cmp"
	"context"
	"errors"
	"strconv"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/pilotkit/pilotkit/configstore"
)

func revisionChecks() []check {
	return []check{
		{Name: "Revision/Grows", Promise: "the revision grows with each committed change, and with nothing else", Source: promisedWatcher, Skip: needOwnRevision, Run: checkRevisionGrows},
	}
}

func batchChecks() []check {
	return []check{
		{Name: "Batch/All", Promise: "a batch commits all its changes, and Apply returns the revision after it", Source: promisedBatch, Skip: needApply, Run: checkBatchAll},
		{Name: "Batch/Upsert", Promise: "an upsert in a batch updates what exists or has a ResourceVersion, and creates otherwise", Source: promisedBatch, Skip: needApply, Run: checkBatchUpsert},
		{Name: "Batch/Nothing", Promise: "a batch with one impossible change commits nothing", Source: promisedBatch, Skip: needApply, Run: checkBatchNothing},
		{Name: "Batch/Checked", Promise: "evidence that another object is valid spares no validation", Source: promisedBatch, Skip: needApply, Run: checkBatchChecked},
	}
}

func watchChecks() []check {
	return []check{
		{Name: "Watch/Complete", Promise: "Watch yields every change after a revision, in order, old and new", Source: promisedWatcher, Skip: need[configstore.Watcher], Run: checkWatchComplete},
		{Name: "Watch/End", Promise: "Watch ends when its context ends or its caller has enough", Source: promisedWatcher, Skip: need[configstore.Watcher], Run: checkWatchEnd},
		{Name: "Watch/Compacted", Promise: "a revision older than the history yields ErrCompacted and ends; never a silent gap", Source: promisedWatcher, Skip: needHistory, Run: checkWatchCompacted},
	}
}

func readOnlyChecks() []check {
	return []check{{
		Name: "ReadOnly", Promise: "a store that takes no writes returns ErrReadOnly", Source: promisedErrors, Run: checkReadOnly,
		Skip: func(s *suite) string {
			if s.subject.Writer == nil {
				return "the store takes writes"
			}
			return ""
		},
	}}
}

// needOwnRevision is for the checks that distinguish writes with a change from writes without one.
func needOwnRevision(s *suite) string { return cmp.Or(need[configstore.Watcher](s), writes(s)) }

func needApply(s *suite) string {
	if s.subject.Batches == nil {
		return "the store is no configstore.BatchWriter"
	}
	return ""
}

func needHistory(s *suite) string {
	if s.subject.History == 0 {
		return "Subject.History is not set"
	}
	return need[configstore.Watcher](s)
}

// revision returns the store-wide revision.
func (s *suite) revision() uint64 {
	s.Helper()
	return ability[configstore.Watcher](s).Revision()
}

func checkRevisionGrows(s *suite) {
	c := widget("default", "foo", "1")
	last := s.revision()
	grown := func(what string) {
		s.Helper()
		got := s.revision()
		if got <= last {
			s.Broken("the revision went from %d to %d with %s, want it to grow", last, got, what)
		}
		last = got
	}
	same := func(what string) {
		s.Helper()
		s.catchUp()
		if got := s.revision(); got != last {
			s.Broken("the revision went from %d to %d with %s, want it to stay", last, got, what)
		}
	}
	s.create(c)
	grown("Create")
	stale := s.update(widget("default", "foo", "2"))
	grown("Update")
	s.updateStatus(configstore.Config{Meta: c.Meta, Status: content("ready")})
	grown("UpdateStatus")
	s.create(gadget("default", "foo", "1"))
	grown("Create of another kind")
	d := widget("default", "foo", "3")
	d.ResourceVersion = stale
	_, create := s.writer.Create(c)
	_, update := s.writer.Update(d)
	remove := s.writer.Delete(widgetKind(), "absent", "default", nil)
	if create == nil || update == nil || remove == nil {
		s.Broken("an impossible write succeeded: Create %v, Update %v, Delete %v", create, update, remove)
	}
	same("writes that failed")
	d = s.get(c).Clone()
	s.update(d)
	same("an Update that changes nothing")
	s.remove(c)
	grown("Delete")
}

func mutation(op configstore.Op, c configstore.Config) configstore.Mutation {
	return configstore.Mutation{Op: op, Config: c}
}

func checkBatchAll(s *suite) {
	s.create(widget("default", "changed", "1"))
	s.create(widget("default", "gone", "1"))
	last, err := s.subject.Batches.Apply(
		mutation(configstore.OpCreate, widget("default", "new", "2")),
		mutation(configstore.OpUpdate, widget("default", "changed", "2")),
		mutation(configstore.OpDelete, widget("default", "gone", "")),
		mutation(configstore.OpCreate, gadget("default", "new", "2")),
		mutation(configstore.OpUpdate, gadget("default", "new", "3")),
	)
	if err != nil {
		s.Stop("Apply = %v, want success", err)
	}
	s.catchUp()
	s.expectValue(widget("default", "new", ""), "2")
	s.expectValue(widget("default", "changed", ""), "2")
	s.expectAbsent(widget("default", "gone", ""))
	s.expectValue(gadget("default", "new", ""), "3")
	if need[configstore.Watcher](s) == "" && s.subject.Writer == nil && s.revision() != last {
		s.Broken("Apply returned the revision %d, Revision() = %d", last, s.revision())
	}
}

func checkBatchUpsert(s *suite) {
	s.create(widget("default", "foo", "1"))
	_, err := s.subject.Batches.Apply(
		mutation(configstore.OpUpsert, widget("default", "foo", "2")),
		mutation(configstore.OpUpsert, widget("default", "new", "1")),
		mutation(configstore.OpUpsert, widget("default", "new", "2")),
	)
	if err != nil {
		s.Stop("Apply = %v, want success", err)
	}
	s.catchUp()
	s.expectValue(widget("default", "foo", ""), "2")
	s.expectValue(widget("default", "new", ""), "2")
	absent := widget("default", "absent", "1")
	absent.ResourceVersion = s.get(widget("default", "foo", "")).ResourceVersion
	if _, err := s.subject.Batches.Apply(mutation(configstore.OpUpsert, absent)); !errors.Is(err, configstore.ErrNotFound) {
		s.Broken("Apply with an upsert of what has a ResourceVersion and does not exist = %v, want ErrNotFound", err)
	}
}

func checkBatchNothing(s *suite) {
	revision := s.create(widget("default", "foo", "1"))
	stale := widget("default", "foo", "3")
	stale.ResourceVersion = revision + "0"
	changed := widget("default", "foo", "3")
	changed.ResourceVersion = revision
	for what, e := range map[string]struct {
		last configstore.Mutation
		want error
	}{
		"a Create of what exists":     {mutation(configstore.OpCreate, widget("default", "foo", "9")), configstore.ErrAlreadyExists},
		"an Update of what does not":  {mutation(configstore.OpUpdate, widget("default", "absent", "9")), configstore.ErrNotFound},
		"an Update in conflict":       {mutation(configstore.OpUpdate, stale), configstore.ErrConflict},
		"an Update of its own change": {mutation(configstore.OpUpdate, changed), configstore.ErrConflict},
		"a Delete of what is absent":  {mutation(configstore.OpDelete, widget("default", "absent", "")), configstore.ErrNotFound},
		"a Create of an unknown kind": {mutation(configstore.OpCreate, object(unknownKind(), "default", "x", "")), configstore.ErrUnknownKind},
	} {
		_, err := s.subject.Batches.Apply(
			mutation(configstore.OpCreate, widget("default", "new", "2")),
			mutation(configstore.OpUpdate, widget("default", "foo", "2")),
			e.last,
		)
		if !errors.Is(err, e.want) {
			s.Broken("Apply with %s = %v, want %v", what, err, e.want)
		}
		s.catchUp()
		s.expectAbsent(widget("default", "new", ""))
		s.expectUnchanged(widget("default", "foo", "1"), revision)
	}
}

func checkBatchChecked(s *suite) {
	good := widget("default", "foo", "1")
	checked, _, err := s.store.Schemas().Check(good)
	if err != nil {
		s.Stop("Schemas().Check = %v, want success", err)
	}
	bad := good
	bad.Spec = &structpb.Struct{Fields: map[string]*structpb.Value{
		"bad1": structpb.NewNullValue(), "bad2": structpb.NewNullValue(),
	}}
	_, err = s.subject.Batches.Apply(configstore.Mutation{Op: configstore.OpCreate, Config: bad, Checked: checked})
	s.catchUp()
	s.expectViolations("Apply", bad, err)
	s.expectAbsent(bad)
	if _, err := s.subject.Batches.Apply(configstore.Mutation{Op: configstore.OpCreate, Config: good, Checked: checked}); err != nil {
		s.Broken("Apply of an object that was checked = %v, want success", err)
	}
	s.catchUp()
	s.expectValue(good, "1")
}

// watch follows the store until f says that it has enough or the time is up.
func (s *suite) watch(from uint64, f func(configstore.Change, error) bool) {
	s.Helper()
	w := ability[configstore.Watcher](s)
	ctx, cancel := context.WithTimeout(s.Context(), s.Timeout)
	defer cancel()
	for c, err := range w.Watch(ctx, from) {
		if !f(c, err) {
			return
		}
	}
	if ctx.Err() != nil {
		s.Stop("Watch from %d has not yielded what was written after %v", from, s.Timeout)
	}
}

func checkWatchComplete(s *suite) {
	c := widget("default", "foo", "1")
	s.create(c)
	from := s.revision()
	added := s.get(c)
	s.update(widget("default", "foo", "2"))
	updated := s.get(c)
	s.create(gadget("default", "bar", "1"))
	done := make(chan struct{})
	go func() {
		// The rest happens while the watch is on.
		defer close(done)
		_ = s.writer.Delete(widgetKind(), "foo", "default", nil)
		_, _ = s.writer.Create(widget("default", "foo", "3"))
	}()
	var got []configstore.Change
	s.watch(from, func(c configstore.Change, err error) bool {
		if err != nil {
			s.Broken("Watch yielded %v", err)
			return false
		}
		got = append(got, c)
		return len(got) < 4
	})
	<-done
	want := []string{"update Widget default/foo", "add Gadget default/bar", "delete Widget default/foo", "add Widget default/foo"}
	last := from
	for i, c := range got {
		if text := (Call{Curr: *c.Curr, Event: c.Event}).String(); text != want[i] || c.Revision <= last {
			s.Broken("change %d is %q of revision %d, want %q of one after %d", i, text, c.Revision, want[i], last)
		}
		last = c.Revision
		if (c.Old != nil) != (c.Event == configstore.EventUpdate) {
			s.Broken("change %d, %q, has Old = %s", i, want[i], describe(c.Old))
		}
	}
	if last != s.revision() {
		s.Broken("the last change has the revision %d, Revision() = %d", last, s.revision())
	}
	if len(got) == 4 && (got[0].Old != added || got[0].Curr != updated) {
		s.Broken("the update is from %s to %s, want the very objects replaced and stored", describe(got[0].Old), describe(got[0].Curr))
	}
}

func checkWatchEnd(s *suite) {
	w := ability[configstore.Watcher](s)
	from := s.revision()
	ctx, cancel := context.WithCancel(s.Context())
	defer cancel()
	s.create(widget("default", "foo", "1"))
	ended := make(chan struct{})
	seen := make(chan struct{}, 1)
	go func() {
		defer close(ended)
		for _, err := range w.Watch(ctx, from) {
			if err != nil {
				s.Broken("Watch yielded %v", err)
			}
			select {
			case seen <- struct{}{}:
			default:
			}
		}
	}()
	s.Await(seen, "the first change of a Watch")
	cancel()
	s.Await(ended, "the end of a Watch whose context was cancelled")
}

func checkWatchCompacted(s *suite) {
	from := s.revision()
	for i := range s.subject.History + 2 {
		s.create(widget("default", "w"+strconv.Itoa(i), "1"))
	}
	yielded := 0
	s.watch(from, func(_ configstore.Change, err error) bool {
		yielded++
		if !errors.Is(err, configstore.ErrCompacted) {
			s.Broken("Watch from %d, where the last %d changes up to %d are kept, yielded %v, want ErrCompacted",
				from, s.subject.History, s.revision(), err)
			return false
		}
		return true
	})
	if yielded != 1 {
		s.Broken("Watch yielded %d times, want ErrCompacted alone", yielded)
	}
}

func checkReadOnly(s *suite) {
	c := widget("default", "foo", "1")
	s.create(c)
	for verb, err := range s.writeAll(c) {
		if !errors.Is(err, configstore.ErrReadOnly) {
			s.Broken("%s = %v, want ErrReadOnly", verb, err)
		}
	}
	s.catchUp()
	s.expectValue(c, "1")
}
