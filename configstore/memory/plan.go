// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"strconv"
	"time"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/internal/rules"
	"github.com/pilotkit/pilotkit/internal/limit"
)

// plan collects the changes of a batch, which are invisible before the commit. It is used under the
// store's lock.
type plan struct {
	store *Store
	// committed is the revision that the plan applies to. revision is the last planned one.
	committed, revision uint64
	// changes are the events, in order.
	changes []configstore.Change
	// versions are the last versions of the objects that change.
	versions []version
	// byKey has the positions in versions.
	byKey map[versionKey]int
	// absent represents an object that does not exist. It is immutable, because readers may see it
	// without the lock.
	absent *object
}

// version is the last version of an object in a plan.
type version struct {
	kind  *kind
	entry *entry
	// before is the committed version or the absent one.
	before *object
}

type versionKey struct {
	kind *kind
	key
}

// begin prepares the empty plan for a batch.
func (p *plan) begin(s *Store) {
	p.store, p.committed = s, s.committed.Load()
	p.revision = p.committed
	if p.byKey == nil {
		p.byKey = map[versionKey]int{}
	}
}

// maxKept is the largest plan, in changes, whose memory is kept for the next one.
const maxKept limit.Size = 64

// end empties the plan.
func (p *plan) end() {
	if len(p.changes) > maxKept.Get() {
		p.changes, p.versions, p.byKey = nil, nil, nil
		return
	}
	clear(p.byKey)
	clear(p.changes)
	clear(p.versions)
	p.changes, p.versions = p.changes[:0], p.versions[:0]
}

// add plans one request and returns the object's revision after it. The errors are those of
// ConfigStore.
func (p *plan) add(r *request) (string, error) {
	at := r.key()
	i, planned := p.byKey[versionKey{r.kind, at}]
	cur := p.current(r, i, planned)
	r.op = rules.Decide(r.op, cur.exists(), r.given)
	if err := rules.Check(r.op, cur.exists(), r.given, r.config.ResourceVersion, cur.ResourceVersion); err != nil {
		return "", r.fail(err)
	}
	e := &entry{Key: at, Value: object{gone: r.op == configstore.OpDelete, Config: r.config}}
	if !r.complete(&e.Value.Config, cur) {
		return cur.ResourceVersion, nil
	}
	p.revision++
	o := &e.Value
	o.revision = p.revision
	if !p.store.opts.Mirror {
		o.ResourceVersion = strconv.FormatUint(p.revision, 10)
	}
	if p.store.opts.DetectMutations && o.exists() {
		original := o.Clone()
		o.original = &original
	}
	if planned {
		p.versions[i].entry = e
	} else {
		p.byKey[versionKey{r.kind, at}] = len(p.versions)
		p.versions = append(p.versions, version{r.kind, e, cur})
	}
	p.changes = append(p.changes, r.event(o, cur))
	return o.ResourceVersion, nil
}

// current returns the version that a request applies to, or the absent one.
func (p *plan) current(r *request, i int, planned bool) *object {
	o := r.seen
	switch {
	case planned:
		return &p.versions[i].entry.Value
	case r.seenAt != p.committed:
		o = r.kind.get(r.key(), p.committed)
	}
	if o == nil {
		return p.absent
	}
	return o
}

// complete makes the next version of c, which is as the caller gave it. It
// returns false if the request changes nothing.
func (r *request) complete(c *configstore.Config, cur *object) bool {
	switch r.op {
	case configstore.OpUpsert:
		panic("memory: an upsert that was not decided")
	case configstore.OpCreate:
		if !r.kind.mirror {
			c.Generation = 1
		}
		if c.CreationTimestamp.IsZero() {
			c.CreationTimestamp = time.Now().Round(0) // no monotonic reading
		}
	case configstore.OpUpdate:
		if cur != r.seen {
			r.differs = r.kind.compare(&cur.Config, c)
		}
		if !r.differs.Anything {
			return false
		}
		if !r.kind.mirror {
			c.Generation = cur.Generation
			if r.differs.Spec {
				c.Generation++
			}
		}
		if c.CreationTimestamp.IsZero() {
			c.CreationTimestamp = cur.CreationTimestamp
		}
	case configstore.OpUpdateStatus:
		status := c.Status
		if configstore.EqualMessage(cur.Status, status) {
			return false
		}
		*c = cur.Config
		c.Status = status
	case configstore.OpDelete:
		*c = configstore.Config{Meta: configstore.Meta{
			GroupVersionKind: c.GroupVersionKind, Name: c.Name, Namespace: c.Namespace,
		}}
	}
	return true
}

// event returns the change that a request makes, by the table of configstore.
func (r *request) event(o, cur *object) configstore.Change {
	change := configstore.Change{Curr: &o.Config, Revision: o.revision}
	switch r.op {
	case configstore.OpUpsert: // complete has refused it
	case configstore.OpCreate:
		change.Event = configstore.EventAdd
	case configstore.OpUpdate, configstore.OpUpdateStatus:
		change.Event, change.Old = configstore.EventUpdate, &cur.Config
	case configstore.OpDelete:
		change.Event, change.Curr = configstore.EventDelete, &cur.Config
	}
	return change
}

// commitLocked makes the planned changes visible and notifies of them, in the
// steps of the package comment.
func (s *Store) commitLocked() {
	p := &s.plan
	if len(p.changes) == 0 {
		return
	}
	p.install()
	s.committed.Store(p.revision)
	if s.snapshot.Load() != nil {
		s.snapshot.Store(nil)
	}
	p.finish()
	s.history.add(p.changes)
	for _, q := range s.queues {
		q.Push(p.changes...)
	}
}

// awaitCommit waits until the commit in progress, if there is one, has ended: its
// changes can be read before they are in the queues.
func (s *Store) awaitCommit() {
	s.mu.Lock()
	defer s.mu.Unlock()
}

// install puts the planned versions into the maps, where no reader sees them
// before the revision is committed.
func (p *plan) install() {
	for i := range p.versions {
		// An object that is created and deleted within the batch is not installed.
		if v := &p.versions[i]; v.entry.Value.exists() || v.before.exists() {
			v.kind.install(v.entry, v.before)
		}
	}
}

// finish ends what install began, once the revision is committed.
func (p *plan) finish() {
	for i := range p.versions {
		p.versions[i].kind.finish(p.versions[i].entry)
	}
}
