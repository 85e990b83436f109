// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"errors"

	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/configstore"
)

func deleteChecks() []check {
	return []check{
		{Name: "Delete/NotFound", Promise: "a Delete of what does not exist returns ErrNotFound", Source: promisedErrors, Skip: writes, Run: checkDeleteNotFound},
		{Name: "Delete/Conflict", Promise: "a Delete with a resourceVersion that is not the stored one returns ErrConflict and changes nothing", Source: promisedConflict, Skip: writes, Run: checkDeleteConflict},
		{Name: "Delete/Revision", Promise: "a Delete with the stored resourceVersion, or with none, removes the object", Source: promisedConflict, Skip: writes, Run: checkDeleteRevision},
	}
}

func ownershipChecks() []check {
	return []check{
		{Name: "Ownership/Arguments", Promise: "the store never modifies a caller's maps or messages", Source: promisedOwnership, Skip: writes, Run: checkArguments},
		{Name: "Ownership/Results", Promise: "an object that was handed out does not change any more", Source: promisedOwnership, Run: checkResults},
	}
}

func checkDeleteNotFound(s *suite) {
	for range 2 {
		if err := s.writer.Delete(widgetKind(), "foo", "default", nil); !errors.Is(err, configstore.ErrNotFound) {
			s.Broken("Delete(Widget default/foo) = %v, want ErrNotFound", err)
		}
		revision := s.create(widget("default", "foo", "1"))
		s.remove(widget("default", "foo", ""))
		again := widget("default", "foo", "")
		again.ResourceVersion = revision
		s.refused("Delete", again, s.deletion, configstore.ErrNotFound)
	}
}

func checkDeleteConflict(s *suite) {
	c := widget("default", "foo", "1")
	stale := s.create(c)
	s.update(widget("default", "foo", "2"))
	for _, revision := range []string{stale, "made-up"} {
		c.ResourceVersion = revision
		s.refused("Delete", c, s.deletion, configstore.ErrConflict)
	}
	s.expectValue(c, "2")
}

func checkDeleteRevision(s *suite) {
	c := widget("default", "foo", "1")
	stored := c
	stored.ResourceVersion = s.create(c)
	s.must("Delete", stored, s.deletion)
	s.expectAbsent(c)
	s.create(c)
	s.remove(c)
	s.expectAbsent(c)
}

func checkArguments(s *suite) {
	c := widget("default", "foo", "1")
	c.Labels = map[string]string{"app": "foo"}
	c.Annotations = map[string]string{"ResourceVersion": "x"}
	c.OwnerReferences = owner()
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
			s.Broken("%s changed its argument from %+v to %+v", step.verb, before, c)
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
		s.Broken("an object from Get was %+v and became %+v after later writes", before, *got)
	}
}
