// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/pilotkit/pilotkit/configstore"
)

// The time between two repairs of one object grows from the first to the second, so
// that two writers who contradict each other do not do so all the time.
const (
	firstRepairDelay = time.Second
	maxRepairDelay   = time.Minute
)

// errNotLeading is what ends a write when another process may write.
var errNotLeading = errors.New("this process does not lead any more")

// reported is what there is to say about an object.
type reported struct {
	// subject is what accepted is about.
	subject  subject
	accepted Condition
	// conditions are the program's, by type.
	conditions map[string]Condition
	// version counts the changes of all that.
	version int

	// said is the version that the object has shown at a revision, or shows since it was
	// written.
	said     int
	revision string
	// repairAt is when the next repair may be made, if repairs follow one another.
	repairAt    time.Time
	repairDelay time.Duration
}

// subject is one generation of an object. Generation 0 is none.
type subject struct {
	uid        string
	generation int64
}

// update takes what the cache has of an object, and conditions of the program, and has
// the object looked at.
func (w *StatusWriter) update(key configstore.ConfigKey, conditions []Condition) {
	w.mu.Lock()
	about, accepted := w.cache.accepted(key)
	if about.generation == 0 {
		delete(w.objects, key)
		w.mu.Unlock()
		return
	}
	r := w.objects[key]
	if r == nil {
		r = &reported{conditions: map[string]Condition{}}
		w.objects[key] = r
	}
	changed := r.subject != about || r.accepted != accepted
	r.subject, r.accepted = about, accepted
	for _, c := range conditions {
		if r.conditions[c.Type] != c {
			r.conditions[c.Type], changed = c, true
		}
	}
	if changed {
		r.version++
	}
	w.mu.Unlock()
	switch {
	case !w.Leading(): // Whoever becomes the leader looks at everything.
	case changed:
		w.queue.AddUrgent(key)
	case len(conditions) == 0: // It is an event of the object: somebody may have changed the status.
		w.queue.Add(key)
	}
}

func (w *StatusWriter) forget(key configstore.ConfigKey) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.objects, key)
}

// known returns what there is to say about an object now; generation 0: nothing.
func (w *StatusWriter) known(key configstore.ConfigKey) (about subject, conditions []Condition, version int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.objects[key]
	if r == nil {
		return subject{}, nil, 0
	}
	conditions = append(conditions, r.accepted)
	for _, name := range slices.Sorted(maps.Keys(r.conditions)) {
		conditions = append(conditions, r.conditions[name])
	}
	return r.subject, conditions, r.version
}

// mustWrite compares what the cache shows with what there is to say. It takes no
// request.
func (w *StatusWriter) mustWrite(key configstore.ConfigKey) bool {
	about, conditions, version := w.known(key)
	text, revision := w.cache.shownStatus(key)
	if about.generation == 0 || w.hasSaid(key, version, revision) {
		return false
	}
	_, changes, err := mergeStatus(text, about.generation, conditions, w.now())
	if err != nil {
		// Nothing can be added to it. The next event of the object brings it here again.
		w.opts.Logger.Warn("status is left alone", slog.String("object", key.Object()), slog.Any("error", err))
		changes = false
	}
	if !changes {
		w.say(key, version, revision)
		return false
	}
	return w.mayRepair(key, version)
}

// hasSaid reports whether a version was said at a revision, or a later one: what the
// cache shows then is older than what was written.
func (w *StatusWriter) hasSaid(key configstore.ConfigKey, version int, revision string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.objects[key]
	if r == nil || r.said != version {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(revision, r.revision)
	return revision == r.revision || err == nil && order < 0
}

// say notes that an object says a version at a revision.
func (w *StatusWriter) say(key configstore.ConfigKey, version int, revision string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r := w.objects[key]; r != nil {
		r.said, r.revision = version, revision
	}
}

// mayRepair reports whether an object may be written that does not say a version any
// more; if that was so lately, it is for later. What was never said may be written always.
func (w *StatusWriter) mayRepair(key configstore.ConfigKey, version int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.objects[key]
	if r == nil || r.said != version {
		return r != nil
	}
	now := w.now()
	wait := r.repairAt.Sub(now)
	if wait > 0 {
		w.queue.AddAfter(key, wait)
		return false
	}
	if r.repairDelay *= 2; r.repairDelay == 0 || -wait > maxRepairDelay {
		r.repairDelay = firstRepairDelay
	}
	r.repairDelay = min(r.repairDelay, maxRepairDelay)
	r.repairAt = now.Add(r.repairDelay)
	return true
}

// write brings the status of one object up to date. Each attempt reads the object, and
// decides anew: whether this process still leads, and what there is to say.
func (w *StatusWriter) write(ctx context.Context, key configstore.ConfigKey) error {
	one := &write{cache: w.cache, kind: w.cache.kind(key.Kind), op: configstore.OpUpdateStatus, config: configstore.Config{
		Meta: configstore.Meta{GroupVersionKind: key.Kind, Name: key.Name, Namespace: key.Namespace},
	}}
	one.ctx, one.cancel = context.WithTimeout(ctx, w.cache.opts.WriteTimeout)
	defer one.cancel()
	version := 0
	s, err := one.modify(func(s *stored) (*stored, error) {
		if !w.Leading() {
			return nil, errNotLeading
		}
		var about subject
		var conditions []Condition
		about, conditions, version = w.known(key)
		if about != (subject{string(s.object.UID), s.object.Generation}) {
			version = 0
			return s, nil // The cache will see it, and then it is our turn again.
		}
		text, changed, err := mergeStatus(s.fields["status"], about.generation, conditions, w.now())
		if err != nil || !changed {
			return s, err
		}
		s.fields["status"] = text
		return one.put(s, "status")
	})
	switch {
	case err == nil && version != 0:
		w.say(key, version, s.object.ResourceVersion)
	case errors.Is(err, errNotLeading):
		return nil // Who leads looks at everything.
	}
	if _, err = one.finish("", err); errors.Is(err, configstore.ErrNotFound) {
		w.forget(key) // It is gone, or its kind has no such subresource.
		return nil
	}
	return err
}

// shownStatus returns the status of an object, and its revision, as the cache has read
// them last; of a status that was decoded without what the schema does not know.
func (c *Cache) shownStatus(key configstore.ConfigKey) (text []byte, revision string) {
	kind := c.kind(key.Kind)
	c.mu.Lock()
	v := kind.verdicts[objectKey{key.Namespace, key.Name}]
	c.mu.Unlock()
	if v != nil && (v.err != nil || v.status != nil) {
		return v.shown, v.revision
	}
	o := c.Get(key.Kind, key.Name, key.Namespace)
	if o == nil {
		return nil, ""
	}
	if o.Status != nil {
		text, _ = protojson.Marshal(o.Status) // It was decoded.
	}
	return text, o.ResourceVersion
}
