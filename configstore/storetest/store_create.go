// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"errors"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/sourcecontextpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilotkit/pilotkit/configstore"
)

func createChecks() []check {
	return []check{
		{Name: "Create/Exists", Promise: "a Create of a key that exists returns ErrAlreadyExists and changes nothing", Source: promisedAtomic, Skip: writes, Run: checkCreateExists},
		{Name: "Create/Revision", Promise: "the store alone assigns ResourceVersion, and Create returns it", Source: promisedMeta, Skip: writes, Run: checkCreateRevision},
		{Name: "Create/Generation", Promise: "Create sets Generation to 1", Source: promisedMeta, Skip: writes, Run: checkCreateGeneration},
		{Name: "Create/CreationTime", Promise: "Create sets CreationTimestamp to the current time if it is zero, and keeps it otherwise", Source: promisedMeta, Skip: writes, Run: checkCreateTime},
		{Name: "Create/Status", Promise: "Create stores the Status", Source: promisedStore, Skip: writes, Run: checkCreateStatus},
		{Name: "Create/Kind", Promise: "a write may leave the kind empty if only one kind has specs of its type", Source: promisedStore, Skip: writes, Run: checkKindOfSpec},
		{Name: "UnknownKind", Promise: "a write of an unknown kind returns ErrUnknownKind", Source: promisedErrors, Skip: writes, Run: checkUnknownKind},
		{Name: "Invalid", Promise: "an invalid object is refused with a *ValidationError that lists every violation, and nothing changes", Source: promisedErrors, Skip: writes, Run: checkInvalid},
		{Name: "Invalid/Shape", Promise: "an object that does not fit its schema is refused with ErrInvalid", Source: "configstore.Schema.Check", Skip: writes, Run: checkShape},
		{Name: "Errors/Text", Promise: "errors name the verb and the object, as in \"create ServiceEntry default/foo: already exists\"", Source: promisedErrors, Skip: writes, Run: checkErrorText},
	}
}

func checkKindOfSpec(s *suite) {
	comet := func(file string) configstore.Config {
		return configstore.Config{
			Meta: configstore.Meta{Namespace: "default", Name: "foo"},
			Spec: &sourcecontextpb.SourceContext{FileName: file},
		}
	}
	s.create(comet("1"))
	s.update(comet("2"))
	got := s.store.Get(cometKind(), "foo", "default")
	if got == nil || got.GroupVersionKind != cometKind() {
		s.Stop("Get(Comet default/foo) = %v after a Create without a kind, want the object as a Comet", got)
	}
	if spec, ok := got.Spec.(*sourcecontextpb.SourceContext); !ok || spec.GetFileName() != "2" {
		s.Broken("Get(Comet default/foo) has the spec %v, want that of the Update without a kind", got.Spec)
	}
	several := widget("default", "foo", "1")
	several.GroupVersionKind = configstore.GroupVersionKind{} // Several kinds have specs of this type.
	s.refused("Create", several, s.writer.Create, configstore.ErrUnknownKind)
}

func checkCreateExists(s *suite) {
	c := widget("default", "foo", "1")
	revision := s.create(c)
	second := widget("default", "foo", "2")
	second.ResourceVersion = revision
	s.refused("Create", second, s.writer.Create, configstore.ErrAlreadyExists)
	s.expectUnchanged(c, revision)
}

func checkCreateRevision(s *suite) {
	c := widget("default", "foo", "1")
	c.ResourceVersion = "chosen-by-caller"
	c.Annotations = map[string]string{"ResourceVersion": "chosen-by-annotation"}
	revision := s.create(c)
	got := s.get(c)
	switch {
	case revision == "":
		s.Broken("Create returned an empty revision")
	case revision != got.ResourceVersion:
		s.Broken("Create returned the revision %q, Get has %q", revision, got.ResourceVersion)
	case revision == "chosen-by-caller" || revision == "chosen-by-annotation":
		s.Broken("Create took over the revision %q from the caller", revision)
	}
	if got.Annotations["ResourceVersion"] != "chosen-by-annotation" {
		s.Broken("an annotation of the name ResourceVersion was taken away; it has no meaning")
	}
}

func checkCreateGeneration(s *suite) {
	c := widget("default", "foo", "1")
	c.Generation = 7
	s.create(c)
	if got := s.get(c).Generation; got != 1 {
		s.Broken("Generation = %d after Create, want 1", got)
	}
	s.update(widget("default", "foo", "2"))
	s.remove(c)
	s.create(c)
	if got := s.get(c).Generation; got != 1 {
		s.Broken("Generation = %d after Create, Update, Delete, Create, want 1", got)
	}
}

func checkCreateTime(s *suite) {
	before := time.Now()
	c := widget("default", "foo", "1")
	s.create(c)
	// Stores may keep seconds only, as Kubernetes does.
	if got := s.get(c).CreationTimestamp; got.Before(before.Add(-time.Second)) || got.After(time.Now().Add(time.Second)) {
		s.Broken("CreationTimestamp = %v, want the current time %v", got, before)
	}
	if s.subject.APIServer {
		return
	}
	given := time.Date(2020, 2, 3, 4, 5, 6, 0, time.UTC)
	d := widget("default", "bar", "1")
	d.CreationTimestamp = given
	s.create(d)
	if got := s.get(d).CreationTimestamp; !got.Equal(given) {
		s.Broken("CreationTimestamp = %v, want the given %v", got, given)
	}
}

func checkCreateStatus(s *suite) {
	c := widget("default", "foo", "1")
	c.Status = content("ready")
	s.create(c)
	if got := s.get(c).Status; !configstore.EqualMessage(got, content("ready")) {
		s.Broken("Status = %v, want what was created", got)
	}
}

func checkUnknownKind(s *suite) {
	c := object(unknownKind(), "default", "foo", "1")
	for verb, err := range s.writeAll(c) {
		if !errors.Is(err, configstore.ErrUnknownKind) {
			s.Broken("%s of a %s = %v, want ErrUnknownKind", verb, unknownKind(), err)
		}
	}
}

// writeAll tries all verbs and returns their errors.
func (s *suite) writeAll(c configstore.Config) map[string]error {
	_, create := s.store.Create(c)
	_, update := s.store.Update(c)
	_, status := s.store.UpdateStatus(c)
	remove := s.store.Delete(c.GroupVersionKind, c.Name, c.Namespace, nil)
	return map[string]error{"Create": create, "Update": update, "UpdateStatus": status, "Delete": remove}
}

func checkInvalid(s *suite) {
	bad := widget("default", "foo", "1")
	bad.Spec = &structpb.Struct{Fields: map[string]*structpb.Value{
		"bad1": structpb.NewNullValue(), "good": structpb.NewNullValue(), "bad2": structpb.NewNullValue(),
	}}
	_, err := s.writer.Create(bad)
	s.catchUp()
	s.expectViolations("Create", bad, err)
	s.expectAbsent(bad)

	revision := s.create(widget("default", "foo", "1"))
	_, err = s.writer.Update(bad)
	s.catchUp()
	s.expectViolations("Update", bad, err)
	s.expectUnchanged(widget("default", "foo", "1"), revision)
}

func (s *suite) expectViolations(verb string, c configstore.Config, err error) {
	s.Helper()
	if !errors.Is(err, configstore.ErrInvalid) {
		s.Broken("%s of an invalid object = %v, want ErrInvalid", verb, err)
		return
	}
	var invalid *configstore.ValidationError
	if !errors.As(err, &invalid) {
		s.Broken("%s of an invalid object = %T, want a *ValidationError in it", verb, err)
		return
	}
	var fields []string
	for _, v := range invalid.Violations {
		fields = append(fields, v.Field)
	}
	if want := []string{"spec.bad1", "spec.bad2"}; !slices.Equal(fields, want) || invalid.Key != c.Key() {
		s.Broken("%s: violations of %s in %v, want of %s in %v", verb, invalid.Key, fields, c.Key(), want)
	}
}

func checkShape(s *suite) {
	otherSpec := widget("default", "foo", "1")
	otherSpec.Spec = wrapperspb.String("1")
	noSpec := widget("default", "foo", "1")
	noSpec.Spec = nil
	otherStatus := widget("default", "foo", "1")
	otherStatus.Status = wrapperspb.String("1")
	hasStatus := gadget("default", "foo", "1")
	hasStatus.Status = content("1")
	for what, c := range map[string]configstore.Config{
		"a spec of another type":            otherSpec,
		"no spec":                           noSpec,
		"a status of another type":          otherStatus,
		"a status though its kind has none": hasStatus,
		"no name":                           widget("default", "", "1"),
		"a namespace though its kind is cluster-scoped":   object(planetKind(), "default", "foo", "1"),
		"a spec that is a nil pointer of the right type ": {Meta: widget("default", "foo", "").Meta, Spec: (*structpb.Struct)(nil)},
	} {
		if _, err := s.writer.Create(c); !errors.Is(err, configstore.ErrInvalid) {
			s.Broken("Create of an object with %s = %v, want ErrInvalid", strings.TrimSpace(what), err)
		}
	}
}

func checkErrorText(s *suite) {
	c := widget("default", "foo", "1")
	s.create(c)
	wrong := widget("default", "foo", "2")
	wrong.ResourceVersion = "wrong"
	absent := widget("default", "bar", "1")
	_, exists := s.writer.Create(c)
	_, conflict := s.writer.Update(wrong)
	_, statusConflict := s.writer.UpdateStatus(wrong)
	_, missing := s.writer.Update(absent)
	_, unknown := s.writer.Create(object(unknownKind(), "default", "foo", "1"))
	for _, e := range []struct {
		err          error
		verb, object string
	}{
		{exists, "create", "Widget default/foo"},
		{conflict, "update", "Widget default/foo"},
		{statusConflict, "update", "Widget default/foo"},
		{missing, "update", "Widget default/bar"},
		{s.writer.Delete(widgetKind(), "bar", "default", nil), "delete", "Widget default/bar"},
		{unknown, "create", "Phantom default/foo"},
	} {
		if e.err == nil || !strings.Contains(e.err.Error(), e.verb) || !strings.Contains(e.err.Error(), e.object) {
			s.Broken("the error is %q, want the verb %q and the object %q in it", e.err, e.verb, e.object)
		}
	}
}
