// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilotkit/pilotkit/configstore"
)

func statusChecks() []check {
	return []check{
		{Name: "UpdateStatus/StatusOnly", Promise: "UpdateStatus replaces the Status and nothing else", Source: promisedStore, Skip: writes, Run: checkStatusOnly},
		{Name: "UpdateStatus/KeyOnly", Promise: "UpdateStatus needs the key and the Status only", Source: promisedStore, Skip: writes, Run: checkStatusKeyOnly},
		{Name: "UpdateStatus/NotFound", Promise: "an UpdateStatus of what does not exist returns ErrNotFound", Source: promisedErrors, Skip: writes, Run: checkStatusNotFound},
		{Name: "UpdateStatus/Conflict", Promise: "an UpdateStatus with a ResourceVersion that is not the stored one returns ErrConflict and changes nothing", Source: promisedConflict, Skip: writes, Run: checkStatusConflict},
		{Name: "UpdateStatus/NoOp", Promise: "an UpdateStatus that changes nothing returns the current revision", Source: promisedNoop, Skip: writes, Run: checkStatusNoop},
		{Name: "UpdateStatus/Invalid", Promise: "a status of a wrong type, or for a kind without status, is refused with ErrInvalid", Source: promisedErrors, Skip: writes, Run: checkStatusInvalid},
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
		s.Broken("Status = %v, want %v", got.Status, d.Status)
	}
	if got.ResourceVersion != revision || revision == before.ResourceVersion {
		s.Broken("UpdateStatus returned the revision %q after %q, Get has %q", revision, before.ResourceVersion, got.ResourceVersion)
	}
	want := before
	want.Status, want.ResourceVersion = got.Status, got.ResourceVersion
	if !got.Equal(want) {
		s.Broken("UpdateStatus made %+v of %+v, want no change but Status and revision", got, before)
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
		s.Broken("Status = %v after UpdateStatus without one, want nil", got)
	}
}

func checkStatusNotFound(s *suite) {
	c := widget("default", "foo", "1")
	c.Status = content("ready")
	s.refused("UpdateStatus", c, s.writer.UpdateStatus, configstore.ErrNotFound)
	s.expectAbsent(c)
}

func checkStatusConflict(s *suite) {
	c := widget("default", "foo", "1")
	stale := s.create(c)
	current := s.update(widget("default", "foo", "2"))
	d := configstore.Config{Meta: c.Meta, Status: content("ready")}
	d.ResourceVersion = stale
	s.refused("UpdateStatus", d, s.writer.UpdateStatus, configstore.ErrConflict)
	if got := s.get(c); got.Status != nil || got.ResourceVersion != current {
		s.Broken("a refused UpdateStatus left the status %v and revision %q, want none and %q", got.Status, got.ResourceVersion, current)
	}
	d.ResourceVersion = current
	s.updateStatus(d)
	if s.get(c).Status == nil {
		s.Broken("UpdateStatus with the stored revision did not store the status")
	}
}

func checkStatusNoop(s *suite) {
	c := widget("default", "foo", "1")
	c.Status = content("ready")
	revision := s.create(c)
	got, err := s.writer.UpdateStatus(configstore.Config{Meta: c.Meta, Status: content("ready")})
	if err != nil || got != revision {
		s.Broken("UpdateStatus with the stored status = %q, %v, want the current revision %q", got, err, revision)
	}
	s.catchUp()
	s.expectUnchanged(c, revision)
}

func checkStatusInvalid(s *suite) {
	c := widget("default", "foo", "1")
	s.create(c)
	s.refused("UpdateStatus", configstore.Config{Meta: c.Meta, Status: wrapperspb.String("x")}, s.writer.UpdateStatus, configstore.ErrInvalid)
	g := gadget("default", "foo", "1")
	s.create(g)
	s.refused("UpdateStatus", configstore.Config{Meta: g.Meta, Status: content("x")}, s.writer.UpdateStatus, configstore.ErrInvalid)
	if got := s.get(c).Status; got != nil {
		s.Broken("a refused UpdateStatus left the status %v", got)
	}
}
