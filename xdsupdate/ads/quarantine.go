// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"slices"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/limit"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/difference"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/resource"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/trial"
)

// Validation does not know every reason why a client rejects a resource. When a client rejects a
// resource that several objects contribute to, the server finds the objects by trials, and sends
// that client, and no other, the resource without their contributions.

// Contribution is the part of one object in a resource that several objects make together.
type Contribution struct {
	Object configstore.ConfigKey
	// State must be comparable, and differs when the object, or an object that it is derived from,
	// has changed.
	State any
}

// Omission is how much of a contribution is left out of a resource. The server leaves out more if
// the client rejects the resource with less. What is left out lets no request or connection in.
type Omission uint8

const (
	// Included means that the resource has the contribution.
	Included Omission = iota
	// Failing means that requests that the object selects fail, and its connections are closed.
	Failing
	// Unmatched is Failing without the object's matches, because the client may reject these: all
	// requests fail that no other object selects.
	Unmatched
	// Absent means that the resource has nothing of the object, not even its host names.
	Absent
)

// quarantine finds the objects at fault in one resource, and leaves them out. The cache's mutex guards it.
type quarantine struct {
	// left are the contributions that are left out. good are the contributions to the state that the client accepted
	// last, or nil if it is not known.
	left map[Contribution]omitted
	good []Contribution
	// accepted are the objects that the state that the client accepted last is without.
	accepted map[configstore.ConfigKey]nack
	// search is the search for the rejected contributions, or nil between searches.
	search *trial.Search[Contribution]
	// made replaces a state of the selection: of, which consists of parts. If made is nil, it has
	// to be built, and until then the client keeps its state.
	made, of *resource.State
	parts    []Contribution
	// last is the answer to the last state that the client was sent.
	last struct {
		hash     uint64
		accepted bool
	}
	// restless are the objects that have changed while they were left out, or during a search.
	restless map[configstore.ConfigKey]*restless
	// hopeless means that leaving objects out does not help, withoutAny that the client has rejected the state without
	// all of them.
	hopeless, withoutAny bool
}

// omitted is a contribution that is left out, with the NACK.
type omitted struct {
	Omission
	nack
}

// isolate begins a quarantine of a rejected resource, if several objects make it.
func (l *rejections) isolate(r *rejection, res *resource.State) {
	if _, a, _ := l.conn.cache.layers.answer(l.conn.view.Value(), l.URL, res.Name); a.Without == nil {
		return
	}
	r.search = &quarantine{left: make(map[Contribution]omitted), restless: make(map[configstore.ConfigKey]*restless)}
	r.search.last.hash = res.Hash
	l.own.searches++
	l.own.target = nil
}

// searched returns a rejection in quarantine, or nil if the resource has none or a hopeless one.
func (l *rejections) searched(name string) *rejection {
	if r := l.byName[name]; r != nil && r.search != nil && !r.search.hopeless {
		return r
	}
	return nil
}

// judged records the answer to a state of a resource in quarantine.
func (l *rejections) judged(r *rejection, res *resource.State, accepted bool) {
	q := r.search
	q.last.hash, q.last.accepted = res.Hash, accepted
	l.own.target = nil
	switch {
	case q.made == nil || q.made.Hash != res.Hash: // the answer to an earlier state
	case q.search != nil:
		done, hopeless := q.search.Answer(accepted)
		if hopeless && len(q.left) > 0 {
			clear(q.left) // some of it may have to be left out more deeply
			l.start(q)
			hopeless = false
		}
		q.withoutAny = hopeless
		l.progressed(r, done, hopeless)
		if done && accepted {
			q.settle()
		} else {
			q.made = nil
		}
	case accepted:
		q.good = q.included()
		q.settle()
		if len(q.left) == 0 {
			l.release(r)
		}
	default:
		l.start(q)
		q.made = nil
	}
}

// release ends a quarantine.
func (l *rejections) release(r *rejection) {
	r.search = nil
	if l.own.searches--; r.times == 0 {
		delete(l.byName, r.name)
	}
}

// start begins a search among the parts that are not left out. Likely parts are parts that the last
// accepted state did not have; if it is not known, the parts of changed objects.
func (l *rejections) start(q *quarantine) {
	suspects := q.included()
	likely := trial.SetOf(q.good).Others(suspects)
	if q.good == nil {
		likely = slices.DeleteFunc(slices.Clone(suspects), func(c Contribution) bool {
			return l.Acks.Accepted == 0 || l.conn.cache.recent[c.Object] <= l.Acks.Accepted
		})
	}
	q.search = trial.NewSearch(suspects, likely, int(Absent))
}

// progressed records the result of a search.
func (l *rejections) progressed(r *rejection, done, hopeless bool) {
	q := r.search
	switch {
	case hopeless:
		q.search, q.hopeless, q.accepted = nil, true, nil
		clear(q.left)
	case done:
		for _, c := range q.search.Bad {
			q.left[c] = omitted{Omission(q.search.Depth), r.nack}
			f := r.leftOut(c.Object, r.nack)
			l.conn.cache.failures.Add(l.identify(&f))
		}
		q.good, q.search = q.search.Good, nil
	}
}

// without returns how much is left out of the next state.
func (q *quarantine) without() map[Contribution]Omission {
	out := make(map[Contribution]Omission, len(q.left))
	for c, left := range q.left {
		out[c] = left.Omission
	}
	if q.search != nil {
		for _, c := range q.search.Without() {
			out[c] = Omission(q.search.Depth)
		}
	}
	return out
}

// included returns the parts that are not left out.
func (q *quarantine) included() []Contribution {
	return slices.DeleteFunc(slices.Clone(q.parts), q.omits)
}

func (q *quarantine) omits(c Contribution) bool { return q.left[c].Omission != Included }

// settle records that the client has accepted the state without the contributions in left.
func (q *quarantine) settle() {
	q.accepted = make(map[configstore.ConfigKey]nack, len(q.left))
	for c, o := range q.left {
		q.accepted[c.Object] = o.nack
	}
}

// Snapshot implements sequence.Target: it is that of the selection, except for resources in quarantine.
func (s *subscription) Snapshot() *resource.Snapshot {
	if s.selection == nil {
		return nil
	}
	base, l := s.selection.snapshot, s.rejections
	if base == nil || !l.isolates() {
		return base
	}
	own := &l.own
	if own.target != nil && own.base == base && (own.sent == nil || own.sent == s.Has) {
		return own.target
	}
	var edits []resource.Edit
	own.sent = nil
	for name, r := range l.byName {
		q := r.search
		if q == nil {
			continue
		}
		switch now := base.Find(name); {
		case !now.IsPresent() || q.hopeless && q.of != nil && !q.of.Same(now):
			l.release(r)
		case q.hopeless:
		case q.made != nil && q.of.Same(now):
			edits = append(edits, resource.Edit{Name: name, Resource: q.made})
		default:
			own.sent = s.Has
			edits = append(edits, resource.Edit{Name: name, Resource: s.Has.Find(name)})
		}
	}
	own.target, own.base, own.differences = base.With(edits), base, difference.Known{}
	return own.target
}

// isolates reports whether a resource is in quarantine.
func (l *rejections) isolates() bool { return l != nil && l.own.searches > 0 }

// toMake returns a rejection whose quarantine needs a new state, or nil.
func (l *rejections) toMake() *rejection {
	if !l.isolates() || l.selection == nil || l.selection.snapshot == nil {
		return nil
	}
	_ = l.Snapshot() // without the quarantines that have ended
	for name, r := range l.byName {
		q := r.search
		if q != nil && !q.hopeless && (q.made == nil || !q.of.Same(l.selection.snapshot.Find(name)) && !l.Acks.Awaits(name)) {
			return r // after the answer to the last state, or a search would never end
		}
	}
	return nil
}

// Searching implements sequence.Target.
func (s *subscription) Searching() bool {
	if !s.rejections.isolates() {
		return false
	}
	for _, r := range s.rejections.byName {
		if r.search != nil && r.search.search != nil {
			return true
		}
	}
	return s.rejections.toMake() != nil
}

// manyChanges is the number of recent changes above which they are no hint, because the search would leave out valid
// objects, for as long as a trial lasts.
const manyChanges limit.Size = 1000

// noteChanges records the objects of a push, except services.
func (c *cache) noteChanges(keys map[configstore.ConfigKey]struct{}) {
	for key := range keys {
		if !xdsupdate.IsServiceKey(key) {
			c.recent[key] = c.epoch
		}
		if len(c.recent) > manyChanges.Get() {
			clear(c.recent)
			return
		}
	}
}
