// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"errors"

	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/configstore"
)

func deleteChecks() []check {
	return []check{
		{name: "Delete/NotFound", promise: "a Delete of what does not exist returns ErrNotFound", source: promisedErrors, skip: writes, run: checkDeleteNotFound},
		{name: "Delete/Conflict", promise: "a Delete with a resourceVersion that is not the stored one returns ErrConflict and changes nothing", source: promisedConflict, skip: writes, run: checkDeleteConflict},
		{name: "Delete/Revision", promise: "a Delete with the stored resourceVersion, or with none, removes the object", source: promisedConflict, skip: writes, run: checkDeleteRevision},
	}
}

func ownershipChecks() []check {
	return []check{
		{name: "Ownership/Arguments", promise: "the store never modifies a caller's maps or messages", source: promisedOwnership, skip: writes, run: checkArguments},
		{name: "Ownership/Results", promise: "an object that was handed out does not change any more", source: promisedOwnership, run: checkResults},
	}
}

func checkDeleteNotFound(s *suite) {
	for range 2 {
		if err := s.writer.Delete(widgetKind(), "foo", "default", nil); !errors.Is(err, configstore.ErrNotFound) {
			s.broken("Delete(Widget default/foo) = %v, want ErrNotFound", err)
		}
		revision := s.create(widget("default", "foo", "1"))
		s.remove(widget("default", "foo", ""))
		if err := s.writer.Delete(widgetKind(), "foo", "default", &revision); !errors.Is(err, configstore.ErrNotFound) {
			s.broken("a second Delete(Widget default/foo) = %v, want ErrNotFound", err)
		}
	}
}

func checkDeleteConflict(s *suite) {
	c := widget("default", "foo", "1")
	stale := s.create(c)
	s.update(widget("default", "foo", "2"))
	for _, revision := range []string{stale, "made-up"} {
		if err := s.writer.Delete(widgetKind(), "foo", "default", &revision); !errors.Is(err, configstore.ErrConflict) {
			s.broken("Delete with the revision %q = %v, want ErrConflict", revision, err)
		}
	}
	s.settle()
	s.expectValue(c, "2")
}

func checkDeleteRevision(s *suite) {
	c := widget("default", "foo", "1")
	revision := s.create(c)
	if err := s.writer.Delete(widgetKind(), "foo", "default", &revision); err != nil {
		s.broken("Delete with the stored revision %q = %v, want success", revision, err)
	}
	s.settle()
	s.expectAbsent(c)
	s.create(c)
	s.remove(c)
	s.expectAbsent(c)
}

func checkArguments(s *suite) {
	c := widget("default", "foo", "1")
	c.Labels = map[string]string{"app": "foo"}
	c.Annotations = map[string]string{"ResourceVersion": "x"}
	c.OwnerReferences = []configstore.OwnerReference{{Name: "owner"}}
	c.Status = content("ready")
	for _, step := range []struct {
		verb  string
		write func(configstore.Config) (string, error)
		value string
	}{
		{"Create", s.writer.Create, "1"}, {"Update", s.writer.Update, "2"}, {"UpdateStatus", s.writer.UpdateStatus, "3"},
	} {
		c.Spec, c.Status = content(step.value), content(step.value)
		before := c.Clone()
		s.must(step.verb, c, step.write)
		if !c.Equal(before) {
			s.broken("%s changed its argument from %+v to %+v", step.verb, before, c)
		}
	}
}

func checkResults(s *suite) {
	c := widget("default", "foo", "1")
	c.Labels = map[string]string{"app": "foo"}
	s.create(c)
	got := s.get(c)
	before, spec := got.Clone(), proto.Clone(got.Spec)
	d := widget("default", "foo", "2")
	d.Labels = map[string]string{"app": "bar", "more": "x"}
	s.update(d)
	s.remove(c)
	if !got.Equal(before) || !proto.Equal(got.Spec, spec) {
		s.broken("an object from Get was %+v and became %+v after later writes", before, *got)
	}
}
