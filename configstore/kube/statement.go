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

// The delay between two repairs of one object grows from the first to the second value, so that two
// writers that contradict each other do not write continuously.
const (
	firstRepairDelay = time.Second
	maxRepairDelay   = time.Minute
)

// errNotLeading ends a write because another process may write.
var errNotLeading = errors.New("this process does not lead any more")

// reported is the wanted status of an object.
type reported struct {
	// subject is the generation to which accepted applies.
	subject  subject
	accepted Condition
	// conditions are the host's, by type.
	conditions map[string]Condition
	// version counts the changes of the fields above.
	version int

	// said is the version that the object has shown at a revision, or shows since it was written.
	said     int
	revision string
	// repairAt is the time of the next permitted repair, if repairs follow one another.
	repairAt    time.Time
	repairDelay time.Duration
}

// subject is one generation of an object. Generation 0 means that there is no object.
type subject struct {
	uid        string
	generation int64
}

// update records the cache's state of an object and conditions of the host, and enqueues the
// object.
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
	case !w.Leading(): // A new leader checks all objects.
	case changed:
		w.writer.AddUrgent(key)
	case len(conditions) == 0: // An event of the object: another writer may have changed the status.
		w.writer.Add(key)
	}
}

func (w *StatusWriter) forget(key configstore.ConfigKey) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.objects, key)
}

// known returns the wanted status of an object. The generation is 0 if there is none.
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

// mustWrite compares the cached status with the wanted one, without a request.
func (w *StatusWriter) mustWrite(key configstore.ConfigKey) bool {
	about, conditions, version := w.known(key)
	text, revision := w.cache.shownStatus(key)
	if about.generation == 0 || w.hasSaid(key, version, revision) {
		return false
	}
	_, changes, err := mergeStatus(text, about.generation, conditions, w.now())
	if err != nil {
		// The status cannot be extended. The next event of the object enqueues it again.
		w.writer.Logger.Warn("status is not extended", slog.String("object", key.Object()), slog.Any("error", err))
		changes = false
	}
	if !changes {
		w.say(key, version, revision)
		return false
	}
	return w.mayRepair(key, version)
}

// hasSaid reports whether a version was written at the given revision or a later one. In the latter
// case the cache is behind the write.
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

// say records that an object has a version at a revision.
func (w *StatusWriter) say(key configstore.ConfigKey, version int, revision string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r := w.objects[key]; r != nil {
		r.said, r.revision = version, revision
	}
}

// mayRepair reports whether an object that has lost a version may be written now. After a recent
// repair it is enqueued with a delay. A version that was not written yet may be written at once.
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
		w.writer.AddAfter(key, wait)
		return false
	}
	if r.repairDelay *= 2; r.repairDelay == 0 || -wait > maxRepairDelay {
		r.repairDelay = firstRepairDelay
	}
	r.repairDelay = min(r.repairDelay, maxRepairDelay)
	r.repairAt = now.Add(r.repairDelay)
	return true
}

// write updates the status of one object. Each attempt reads the object, checks that this process
// still leads, and computes the status again.
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
			return s, nil // The cache will receive this version and enqueue the object again.
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
		return nil // The new leader checks all objects.
	}
	if _, err = one.finish("", err); errors.Is(err, configstore.ErrNotFound) {
		w.forget(key) // The object was deleted, or its kind has no status subresource.
		return nil
	}
	return err
}

// shownStatus returns the status and the revision of an object as the cache has read them last. A
// status that was decoded lacks the fields that the schema does not know.
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
		text, _ = protojson.Marshal(o.Status) // A decoded message can be encoded.
	}
	return text, o.ResourceVersion
}
