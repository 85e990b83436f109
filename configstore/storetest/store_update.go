// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"fmt"
	"time"

	"github.com/pilotkit/pilotkit/configstore"
)

func updateChecks() []check {
	return []check{
		{Name: "Update/NotFound", Promise: "an Update of what does not exist returns ErrNotFound and creates nothing", Source: promisedErrors, Skip: writes, Run: checkUpdateNotFound},
		{Name: "Update/Replaces", Promise: "Update replaces labels, annotations and spec", Source: promisedStore, Skip: writes, Run: checkUpdateReplaces},
		{Name: "Update/Conflict", Promise: "an Update with a ResourceVersion that is not the stored one returns ErrConflict and changes nothing", Source: promisedConflict, Skip: writes, Run: checkUpdateConflict},
		{Name: "Update/Overwrite", Promise: "an Update without a ResourceVersion overwrites", Source: promisedConflict, Skip: writes, Run: checkUpdateOverwrite},
		{Name: "Update/Revision", Promise: "each Update that changes something gets a ResourceVersion never seen before, and returns it", Source: promisedStore, Skip: writes, Run: checkUpdateRevision},
		{Name: "Update/CreationTime", Promise: "Update keeps the creation time unless it is given another one", Source: promisedMeta, Skip: ownTimes, Run: checkUpdateTime},
		{Name: "Update/Generation", Promise: "Generation grows by one whenever the spec changes, and only then", Source: promisedMeta, Skip: writes, Run: checkUpdateGeneration},
		{Name: "Update/NoOp", Promise: "an Update that changes nothing returns the current revision and leaves the stored object as it is", Source: promisedNoop, Skip: writes, Run: checkUpdateNoop},
	}
}

func checkUpdateNotFound(s *suite) {
	c := widget("default", "foo", "1")
	s.refused("Update", c, s.writer.Update, configstore.ErrNotFound)
	c.ResourceVersion = "1"
	s.refused("Update", c, s.writer.Update, configstore.ErrNotFound)
	s.expectAbsent(c)
	s.create(c)
	s.remove(c)
	s.refused("Update", c, s.writer.Update, configstore.ErrNotFound)
}

func checkUpdateReplaces(s *suite) {
	c := widget("default", "foo", "1")
	c.Labels = map[string]string{"app": "foo", "old": "x"}
	c.Annotations = map[string]string{"old": "x"}
	s.create(c)
	d := widget("default", "foo", "2")
	d.Labels = map[string]string{"app": "bar"}
	d.Status = content("ready")
	s.update(d)
	got := s.get(c)
	if valueOf(got) != "2" || len(got.Labels) != 1 || got.Labels["app"] != "bar" || len(got.Annotations) != 0 ||
		!configstore.EqualMessage(got.Status, d.Status) {
		s.Broken("Get returned %+v, want what was updated to: %+v", *got, d)
	}
	for _, change := range []func(*configstore.Config){
		func(c *configstore.Config) {
			if c.Domain = "mesh.internal"; s.subject.APIServer {
				c.Labels = nil // The domain alone would be no change.
			}
		},
		func(c *configstore.Config) { c.OwnerReferences = owner() },
		func(c *configstore.Config) { c.Annotations = map[string]string{"new": "y"} },
	} {
		before := s.get(c).ResourceVersion
		change(&d)
		s.update(d)
		got := s.get(c)
		if got.Domain != s.domain(d.Domain) || len(got.OwnerReferences) != len(d.OwnerReferences) ||
			len(got.Annotations) != len(d.Annotations) || got.ResourceVersion == before {
			s.Broken("Get returned %+v, want what was updated to: %+v", *got, d)
		}
	}
}

func checkUpdateConflict(s *suite) {
	c := widget("default", "foo", "1")
	stale := s.create(c)
	current := s.update(widget("default", "foo", "2"))
	// A stale revision conflicts even if the content is the stored one.
	for revision, value := range map[string]string{stale: "3", "made-up": "3", stale + "0": "2"} {
		d := widget("default", "foo", value)
		d.ResourceVersion = revision
		s.refused("Update", d, s.writer.Update, configstore.ErrConflict)
		s.expectUnchanged(widget("default", "foo", "2"), current)
	}
	d := widget("default", "foo", "3")
	d.ResourceVersion = current
	s.update(d)
	s.expectValue(c, "3")
	s.remove(c)
	s.create(c)
	d.ResourceVersion = current
	s.refused("Update", d, s.writer.Update, configstore.ErrConflict)
}

func checkUpdateOverwrite(s *suite) {
	c := widget("default", "foo", "1")
	s.create(c)
	s.update(widget("default", "foo", "2"))
	s.update(widget("default", "foo", "3"))
	s.expectValue(c, "3")
}

func checkUpdateRevision(s *suite) {
	c := widget("default", "foo", "0")
	seen := map[string]bool{s.create(c): true}
	for i := range s.many(50) {
		d := widget("default", "foo", fmt.Sprint(i+1))
		d.Annotations = map[string]string{"ResourceVersion": "chosen-by-annotation"}
		revision := s.update(d)
		if got := s.get(c).ResourceVersion; got != revision {
			s.Broken("Update returned the revision %q, Get has %q", revision, got)
		}
		if seen[revision] || revision == "" {
			s.Stop("Update %d returned the revision %q, which is empty or was used before", i+1, revision)
		}
		seen[revision] = true
	}
	s.remove(c)
	if revision := s.create(c); seen[revision] {
		s.Broken("Create after Delete returned the revision %q, which was used before", revision)
	}
}

func checkUpdateTime(s *suite) {
	c := widget("default", "foo", "1")
	c.CreationTimestamp = time.Date(2020, 2, 3, 4, 5, 6, 0, time.UTC)
	s.create(c)
	s.update(widget("default", "foo", "2"))
	if got := s.get(c).CreationTimestamp; !got.Equal(c.CreationTimestamp) {
		s.Broken("an Update without a creation time changed it from %v to %v", c.CreationTimestamp, got)
	}
	d := widget("default", "foo", "2")
	d.CreationTimestamp = c.CreationTimestamp.AddDate(-1, 0, 0)
	s.update(d)
	if got := s.get(c).CreationTimestamp; !got.Equal(d.CreationTimestamp) {
		s.Broken("an Update with the creation time %v left it at %v", d.CreationTimestamp, got)
	}
}

func checkUpdateGeneration(s *suite) {
	c := widget("default", "foo", "1")
	s.create(c)
	expect := func(what string, want int64) {
		s.Helper()
		if got := s.get(c).Generation; got != want {
			s.Broken("Generation = %d after %s, want %d", got, what, want)
		}
	}
	d := widget("default", "foo", "1")
	d.Labels = map[string]string{"app": "foo"}
	s.update(d)
	expect("a change of labels", 1)
	d.Spec, d.Generation = content("2"), 70
	s.update(d)
	expect("a change of the spec", 2)
	d.Status = content("ready")
	s.updateStatus(d)
	expect("a change of the status", 2)
	d.Spec, d.Generation = content("3"), 0
	s.update(d)
	expect("a second change of the spec", 3)
}

func checkUpdateNoop(s *suite) {
	c := widget("default", "foo", "1")
	c.Labels = map[string]string{"app": "foo"}
	revision := s.create(c)
	before := *s.get(c)
	same := c.Clone()
	same.Annotations = map[string]string{}
	whole := s.get(c).Clone()
	for what, d := range map[string]configstore.Config{"what was created": same, "what Get returned": whole} {
		got, err := s.writer.Update(d)
		if err != nil || got != revision {
			s.Broken("an Update with %s = %q, %v, want the current revision %q", what, got, err, revision)
		}
		s.catchUp()
		if after := s.get(c); !after.Equal(before) {
			s.Broken("an Update with %s changed %+v to %+v", what, before, *after)
		}
	}
}
