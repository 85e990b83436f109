// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"errors"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilotkit/pilotkit/configstore"
)

func statusChecks() []check {
	return []check{
		{name: "UpdateStatus/StatusOnly", promise: "UpdateStatus replaces the Status and nothing else", source: promisedStore, skip: writes, run: checkStatusOnly},
		{name: "UpdateStatus/KeyOnly", promise: "UpdateStatus needs the key and the Status only", source: promisedStore, skip: writes, run: checkStatusKeyOnly},
		{name: "UpdateStatus/NotFound", promise: "an UpdateStatus of what does not exist returns ErrNotFound", source: promisedErrors, skip: writes, run: checkStatusNotFound},
		{name: "UpdateStatus/Conflict", promise: "an UpdateStatus with a ResourceVersion that is not the stored one returns ErrConflict and changes nothing", source: promisedConflict, skip: writes, run: checkStatusConflict},
		{name: "UpdateStatus/NoOp", promise: "an UpdateStatus that changes nothing returns the current revision", source: promisedNoop, skip: writes, run: checkStatusNoop},
		{name: "UpdateStatus/Invalid", promise: "a status of a wrong type, or for a kind without status, is refused with ErrInvalid", source: promisedErrors, skip: writes, run: checkStatusInvalid},
	}
}

func checkStatusOnly(s *suite) {
	c := widget("default", "foo", "1")
	c.Labels = map[string]string{"app": "foo"}
	s.create(c)
	before := *s.get(c)
	d := widget("default", "foo", "2")
	d.Labels = map[string]string{"app": "bar"}
	d.Annotations = map[string]string{"note": "x"}
	d.Domain = "elsewhere"
	d.Status = content("ready")
	revision := s.updateStatus(d)
	got := *s.get(c)
	if !configstore.EqualMessage(got.Status, d.Status) {
		s.broken("Status = %v, want %v", got.Status, d.Status)
	}
	if got.ResourceVersion != revision || revision == before.ResourceVersion {
		s.broken("UpdateStatus returned the revision %q after %q, Get has %q", revision, before.ResourceVersion, got.ResourceVersion)
	}
	want := before
	want.Status, want.ResourceVersion = got.Status, got.ResourceVersion
	if !got.Equal(want) {
		s.broken("UpdateStatus made %+v of %+v, want no change but Status and revision", got, before)
	}
}

func checkStatusKeyOnly(s *suite) {
	c := widget("default", "foo", "1")
	s.create(c)
	s.updateStatus(configstore.Config{Meta: c.Meta, Status: content("ready")})
	s.expectValue(c, "1")
	s.updateStatus(configstore.Config{Meta: c.Meta})
	s.expectValue(c, "1")
	if got := s.get(c).Status; got != nil {
		s.broken("Status = %v after UpdateStatus without one, want nil", got)
	}
}

func checkStatusNotFound(s *suite) {
	c := widget("default", "foo", "1")
	c.Status = content("ready")
	if _, err := s.writer.UpdateStatus(c); !errors.Is(err, configstore.ErrNotFound) {
		s.broken("UpdateStatus(%s) = %v, want ErrNotFound", c.Key().Object(), err)
	}
	s.settle()
	s.expectAbsent(c)
}

func checkStatusConflict(s *suite) {
	c := widget("default", "foo", "1")
	stale := s.create(c)
	current := s.update(widget("default", "foo", "2"))
	d := configstore.Config{Meta: c.Meta, Status: content("ready")}
	d.ResourceVersion = stale
	if _, err := s.writer.UpdateStatus(d); !errors.Is(err, configstore.ErrConflict) {
		s.broken("UpdateStatus with the revision %q, where %q is stored, = %v, want ErrConflict", stale, current, err)
	}
	s.settle()
	if got := s.get(c); got.Status != nil || got.ResourceVersion != current {
		s.broken("a refused UpdateStatus left the status %v and revision %q, want none and %q", got.Status, got.ResourceVersion, current)
	}
	d.ResourceVersion = current
	s.updateStatus(d)
	if s.get(c).Status == nil {
		s.broken("UpdateStatus with the stored revision did not store the status")
	}
}

func checkStatusNoop(s *suite) {
	c := widget("default", "foo", "1")
	c.Status = content("ready")
	revision := s.create(c)
	got, err := s.writer.UpdateStatus(configstore.Config{Meta: c.Meta, Status: content("ready")})
	if err != nil || got != revision {
		s.broken("UpdateStatus with the stored status = %q, %v, want the current revision %q", got, err, revision)
	}
	s.settle()
	if stored := s.get(c).ResourceVersion; stored != revision {
		s.broken("the revision went from %q to %q", revision, stored)
	}
}

func checkStatusInvalid(s *suite) {
	c := widget("default", "foo", "1")
	s.create(c)
	if _, err := s.writer.UpdateStatus(configstore.Config{Meta: c.Meta, Status: wrapperspb.String("x")}); !errors.Is(err, configstore.ErrInvalid) {
		s.broken("UpdateStatus with a status of another type = %v, want ErrInvalid", err)
	}
	g := gadget("default", "foo", "1")
	s.create(g)
	if _, err := s.writer.UpdateStatus(configstore.Config{Meta: g.Meta, Status: content("x")}); !errors.Is(err, configstore.ErrInvalid) {
		s.broken("UpdateStatus of a kind that has none = %v, want ErrInvalid", err)
	}
	s.settle()
	if got := s.get(c).Status; got != nil {
		s.broken("a refused UpdateStatus left the status %v", got)
	}
}
