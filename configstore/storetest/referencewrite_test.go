// SPDX-License-Identifier: Apache-2.0

package storetest_test

import (
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/configstore"
)

// planned is a change that may be committed.
type planned struct {
	event configstore.Event
	curr  *configstore.Config
	// status: only the status changes.
	status, noop bool
}

func (r *reference) refuse(verb string, c configstore.Config, err error) (planned, error) {
	if r.is("bare errors") {
		return planned{}, err
	}
	return planned{}, fmt.Errorf("%s %s: %w", verb, c.Key().Object(), err)
}

// plan computes the effect of a write.
func (r *reference) plan(verb string, c configstore.Config, revision *string) (planned, error) {
	if c.GroupVersionKind == (configstore.GroupVersionKind{}) && !r.is("every write names its kind") {
		c.GroupVersionKind, _ = r.schemas.KindOf(c.Spec)
	}
	key, ok := r.key(c.GroupVersionKind, c.Name, c.Namespace)
	if !ok {
		return r.refuse(verb, c, configstore.ErrUnknownKind)
	}
	c.GroupVersionKind = key.Kind
	stored := r.objects[key]
	if verb == verbUpsert {
		verb = verbCreate
		if stored != nil && !r.is("an upsert creates") || c.ResourceVersion != "" {
			verb = verbUpdate
		}
	}
	if err := r.check(verb, c, stored); err != nil {
		return r.refuse(verb, c, err)
	}
	switch {
	case verb == verbCreate && stored != nil && !r.is("create overwrites"):
		return r.refuse(verb, c, configstore.ErrAlreadyExists)
	case verb == verbDelete && stored == nil && r.is("deleting nothing is fine"):
		return planned{noop: true, curr: &c}, nil
	case stored == nil && (verb == verbUpdate && r.is("update creates") || verb == verbStatus && r.is("status creates")):
		return planned{event: configstore.EventAdd, curr: r.stamp(nil, c)}, nil
	case verb != verbCreate && stored == nil:
		return r.refuse(verb, c, configstore.ErrNotFound)
	}
	if r.conflict(verb, c, stored, revision) {
		return r.refuse(verb, c, configstore.ErrConflict)
	}
	if verb == verbDelete {
		return planned{event: configstore.EventDelete, curr: stored}, nil
	}
	if verb == verbStatus && !r.is("status replaces everything") {
		whole := *stored
		whole.Status = c.Status
		c = whole
	}
	next := r.stamp(stored, c)
	if stored == nil || r.is("create overwrites") {
		return planned{event: configstore.EventAdd, curr: next}, nil
	}
	plan := planned{event: configstore.EventUpdate, curr: next, status: verb == verbStatus}
	same := *next
	same.ResourceVersion, same.Generation = stored.ResourceVersion, stored.Generation
	plan.noop = same.Equal(*stored) && !r.is("no-ops are updates") && (verb != verbStatus || !r.is("status no-ops are updates"))
	if plan.noop {
		plan.curr = stored
	}
	return plan, nil
}

func (r *reference) check(verb string, c configstore.Config, stored *configstore.Config) error {
	if verb == verbDelete || r.trusting || r.is("no validation") || r.is("unknown kinds accepted") {
		return nil
	}
	schema, _ := r.schemas.Find(c.GroupVersionKind)
	if verb == verbStatus && !r.is("status needs the spec") {
		if stored == nil || r.is("status is not checked") {
			return nil
		}
		c.Spec = stored.Spec
	}
	_, err := schema.Check(c)
	if invalid, ok := errors.AsType[*configstore.ValidationError](err); ok {
		if r.is("one violation only") {
			invalid.Violations = invalid.Violations[:1]
		}
		if r.is("shapes are not checked") && !strings.HasPrefix(invalid.Violations[0].Field, "spec.") {
			return nil
		}
	}
	return err
}

func (r *reference) conflict(verb string, c configstore.Config, stored *configstore.Config, revision *string) bool {
	switch verb {
	case verbCreate:
		return false
	case verbDelete:
		if revision == nil {
			return r.is("delete needs a revision")
		}
		return *revision != stored.ResourceVersion && !r.is("delete ignores the revision")
	case verbStatus:
		return c.ResourceVersion != "" && c.ResourceVersion != stored.ResourceVersion && !r.is("status ignores the revision")
	default:
		if c.ResourceVersion == "" {
			return r.is("update needs a revision")
		}
		return c.ResourceVersion != stored.ResourceVersion && !r.is("update ignores the revision")
	}
}

// stamp sets the fields that the store decides.
func (r *reference) stamp(stored *configstore.Config, c configstore.Config) *configstore.Config {
	version := strconv.FormatUint(r.revision+1, 10)
	switch {
	case r.is("versions repeat"):
		version = strconv.FormatUint((r.revision+1)%7, 10)
	case r.is("create takes the caller's version") && c.ResourceVersion != "":
		version = c.ResourceVersion
	case r.is("an annotation is the version") && c.Annotations["ResourceVersion"] != "":
		version = c.Annotations["ResourceVersion"]
	}
	c.ResourceVersion = version
	if r.is("create drops the status") {
		c.Status = nil
	}
	if stored == nil {
		if !r.is("generation of the caller") {
			c.Generation = 1
		}
		if c.CreationTimestamp.IsZero() && !r.is("no creation time") || r.is("creation time is always now") {
			c.CreationTimestamp = time.Now()
		}
		return &c
	}
	if c.CreationTimestamp.IsZero() && !r.is("update forgets the creation time") || r.is("creation time never changes") {
		c.CreationTimestamp = stored.CreationTimestamp
	}
	c.Generation = stored.Generation
	if !configstore.EqualMessage(c.Spec, stored.Spec) || r.is("generation counts updates") {
		c.Generation++
	}
	if r.is("update merges labels") && stored.Labels != nil {
		labels := maps.Clone(stored.Labels)
		maps.Copy(labels, c.Labels)
		c.Labels = labels
	}
	return &c
}

// commit makes a planned change visible and queues its event.
func (r *reference) commit(p planned) string {
	if p.noop {
		return p.curr.ResourceVersion
	}
	key, _ := r.key(p.curr.GroupVersionKind, p.curr.Name, p.curr.Namespace)
	if strings.HasPrefix(r.fault, "reads lag") {
		r.past = append(r.past, maps.Clone(r.objects))
	}
	old := r.objects[key]
	if r.is("writes have two parts") && old != nil && p.event == configstore.EventUpdate {
		half := *old
		half.Labels = p.curr.Labels
		r.objects[key] = &half
		r.giveWay()
	}
	r.revision++
	change := configstore.Change{Event: p.event, Curr: p.curr, Revision: r.revision}
	switch p.event {
	case configstore.EventDelete:
		delete(r.objects, key)
	case configstore.EventUpdate:
		change.Old = old
		if r.is("updates in place") {
			*old = *p.curr
			break
		}
		r.objects[key] = p.curr
	default:
		r.objects[key] = p.curr
	}
	r.refreshLists(key, p)
	r.remember(change)
	r.announce(change, p.status)
	if p.event == configstore.EventDelete {
		return ""
	}
	return p.curr.ResourceVersion
}

func (r *reference) refreshLists(key configstore.ConfigKey, p planned) {
	if r.is("cached lists are stale") {
		if p.event != configstore.EventUpdate {
			clear(r.lists)
		}
		return
	}
	for k, list := range r.lists {
		if k.Kind == key.Kind && p.event == configstore.EventUpdate {
			for i, c := range list {
				if c.Name == p.curr.Name && c.Namespace == p.curr.Namespace {
					list[i] = p.curr
				}
			}
			continue
		}
		delete(r.lists, k)
	}
}

// announce queues the event of a change.
func (r *reference) announce(c configstore.Change, status bool) {
	switch {
	case r.is("status changes send no event") && status:
		return
	case r.is("curr is the caller's") && c.Event == configstore.EventAdd:
		caller := *c.Curr
		caller.ResourceVersion = ""
		c.Curr = &caller
	case r.is("old is a clone") && c.Old != nil:
		clone := c.Old.Clone()
		c.Old = &clone
	case r.is("delete has an old") && c.Event == configstore.EventDelete:
		c.Old = c.Curr
	case r.is("delete has no content") && c.Event == configstore.EventDelete:
		c.Curr = &configstore.Config{Meta: c.Curr.Meta, Spec: proto.Clone(c.Curr.Spec)}
		proto.Reset(c.Curr.Spec)
	}
	if r.is("events are queued after the commit") && c.Revision%2 == 0 {
		r.giveWay()
	}
	r.enqueue(c)
}
