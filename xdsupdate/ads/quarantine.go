// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"maps"
	"slices"
	"time"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/limit"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/acks"
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

// quarantines are the quarantines of a subscription. Nil is an empty set.
type quarantines struct {
	byName map[string]*quarantine
	// version counts the changes of the target.
	version int
	// target replaces base, the snapshot of the selection, for the client; if sent is set, as long as the client has
	// that snapshot.
	target, base, sent *resource.Snapshot
	targetVersion      int
	// difference is the one to target, of differenceKey.
	difference *difference.Difference
	difference.Key
}

// quarantine is one resource that a client rejects. The cache's mutex guards it.
type quarantine struct {
	name string
	// left are the contributions that are left out. good are the contributions to the state that the client accepted
	// last, or nil if it is not known.
	left map[Contribution]omitted
	good []Contribution
	// accepted are the objects that the state that the client accepted last is without.
	accepted []LeftOut
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
	// restless are the objects that have changed while they were left out, or during a search; nil
	// if no object has.
	restless map[configstore.ConfigKey]*restless
	// hopeless means that leaving objects out does not help, withoutAny that the client has rejected the state without
	// all of them.
	hopeless, withoutAny bool
	refusal              Refusal // the last one
}

// omitted is a contribution that is left out, with the NACK.
type omitted struct {
	Omission
	Refusal
}

// isolate begins a quarantine of a rejected resource, if several objects make it.
func (s *subscription) isolate(res *resource.State, o *acks.Response, text string) {
	if _, without := s.conn.cache.resolver(s.conn.view).without(s.URL, res.Name); without == nil {
		return
	}
	if s.quarantines == nil {
		s.quarantines = &quarantines{byName: make(map[string]*quarantine)}
	}
	q := &quarantine{name: res.Name, left: make(map[Contribution]omitted)}
	s.quarantines.byName[res.Name] = q
	q.refusal = Refusal{Name: res.Name, Version: o.Version, Error: text, Since: time.Now()}
	q.last.hash, q.last.accepted = res.Hash, false
	s.quarantines.version++
}

// quarantined returns the quarantine of a resource, or nil if it has none or a hopeless one.
func (s *subscription) quarantined(name string) *quarantine {
	if s.quarantines == nil {
		return nil
	}
	if q := s.quarantines.byName[name]; q != nil && !q.hopeless {
		return q
	}
	return nil
}

// refusedWithoutAny reports whether the client has rejected a resource also without any contribution.
func (s *subscription) refusedWithoutAny(name string) bool {
	if s.quarantines == nil {
		return false
	}
	q := s.quarantines.byName[name]
	return q != nil && q.withoutAny
}

// acceptStates records an ACK for the resources of a response, except those in but.
func (s *subscription) acceptStates(o *acks.Response, but ...*resource.State) {
	if s.quarantines == nil {
		return
	}
	for _, res := range o.Listed {
		if q := s.quarantined(res.Name); q != nil && !slices.Contains(but, res) {
			s.judged(q, res, true)
		}
		if s.quarantines == nil {
			return
		}
	}
}

// refuseState records a NACK of a state of a resource, and reports whether the state was a trial.
func (s *subscription) refuseState(res *resource.State, o *acks.Response, text string) (trial bool) {
	if q := s.quarantined(res.Name); q != nil {
		q.refusal = Refusal{Name: res.Name, Version: o.Version, Error: text, Since: time.Now()}
		s.judged(q, res, false)
		return true
	}
	if s.quarantines == nil || s.quarantines.byName[res.Name] == nil {
		s.isolate(res, o, text)
	}
	return false
}

// judged records the answer to a state of a resource in quarantine.
func (s *subscription) judged(q *quarantine, res *resource.State, accepted bool) {
	q.last.hash, q.last.accepted = res.Hash, accepted
	s.quarantines.version++
	switch {
	case q.made == nil || q.made.Hash != res.Hash: // the answer to an earlier state
	case q.search != nil:
		done, hopeless := q.search.Answer(accepted)
		q.withoutAny = hopeless
		q.progressed(s, done, hopeless)
		if done && accepted {
			q.settle()
		} else {
			q.made = nil
		}
	case accepted:
		q.good = slices.DeleteFunc(slices.Clone(q.parts), func(c Contribution) bool { return q.omits(c) })
		q.settle()
		if len(q.left) == 0 {
			s.release(q)
		}
	default:
		q.start(s.conn.cache.recent.changed(s.Acks.Accepted))
		q.made = nil
	}
}

// release ends a quarantine.
func (s *subscription) release(q *quarantine) {
	delete(s.quarantines.byName, q.name)
	if len(s.quarantines.byName) == 0 {
		s.quarantines = nil
	}
}

// start begins a search among the parts that are not left out. Likely parts are parts that the last
// accepted state did not have; if it is not known, the parts of changed objects.
func (q *quarantine) start(changed map[configstore.ConfigKey]struct{}) {
	left := trial.SetOf(slices.Collect(maps.Keys(q.left)))
	suspects := left.Others(q.parts)
	likely := trial.SetOf(q.good).Others(suspects)
	if q.good == nil {
		likely = slices.DeleteFunc(slices.Clone(suspects), func(c Contribution) bool {
			_, ok := changed[c.Object]
			return !ok
		})
	}
	q.search = trial.NewSearch(suspects, likely, int(Absent))
}

// progressed records the result of a search.
func (q *quarantine) progressed(s *subscription, done, hopeless bool) {
	switch {
	case hopeless:
		q.search, q.hopeless, q.accepted = nil, true, nil
		clear(q.left)
	case done:
		for _, c := range q.search.Bad {
			q.left[c] = omitted{Omission(q.search.Depth), q.refusal}
			s.conn.cache.failures.Add(s.leftOutError(q.name, LeftOut{c.Object, q.refusal.Error}))
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

func (q *quarantine) omits(c Contribution) bool { return q.left[c].Omission != Included }

// settle records that the client has accepted the state without the contributions in left.
func (q *quarantine) settle() { q.accepted = q.leftOut() }

// leftOut are the objects that are left out, sorted.
func (q *quarantine) leftOut() (out []LeftOut) {
	for c, r := range q.left {
		out = append(out, LeftOut{c.Object, r.Error})
	}
	slices.SortFunc(out, compareLeftOut)
	return out
}

// refusals returns one Refusal that names all objects in left, or none.
func (q *quarantine) refusals() []Refusal {
	if len(q.left) == 0 {
		return nil
	}
	out := Refusal{Name: q.name, Times: 1, LeftOut: q.leftOut()}
	for _, r := range q.left {
		if r.Since.After(out.Since) {
			out.Version, out.Error, out.Since = r.Version, r.Error, r.Since
		}
	}
	return []Refusal{out}
}

// Snapshot implements sequence.Target: it is that of the selection, except for resources in quarantine.
func (s *subscription) Snapshot() *resource.Snapshot {
	if s.selection == nil {
		return nil
	}
	base, list := s.selection.snapshot, s.quarantines
	if base == nil || list == nil {
		return base
	}
	if list.base == base && list.targetVersion == list.version && (list.sent == nil || list.sent == s.Has) {
		return list.target
	}
	var edits []resource.Edit
	list.sent = nil
	for name, q := range list.byName {
		switch now := base.Find(name); {
		case now == nil || now.Marker != resource.Present || q.hopeless && q.of != nil && !q.of.Same(now):
			delete(list.byName, name)
		case q.hopeless:
		case q.made != nil && q.of.Same(now):
			edits = append(edits, resource.Edit{Name: name, Resource: q.made})
		default:
			list.sent = s.Has
			edits = append(edits, resource.Edit{Name: name, Resource: s.Has.Find(name)})
		}
	}
	list.base, list.targetVersion = base, list.version
	list.target, list.difference = base.With(edits), nil
	return list.target
}

// ownDifference is difference for a client in quarantine.
func (s *subscription) ownDifference() *difference.Difference {
	list := s.quarantines
	if key := s.differenceKey(); list.difference == nil || list.Key != key {
		list.difference, list.Key = s.state().Difference(s.Has, key.Traits), key
	}
	return list.difference
}

// toMake returns a quarantine that needs a new state, or nil.
func (s *subscription) toMake() *quarantine {
	if s.quarantines == nil || s.selection == nil || s.selection.snapshot == nil {
		return nil
	}
	_ = s.Snapshot() // without the quarantines that have ended
	for name, q := range s.quarantines.byName {
		if !q.hopeless && (q.made == nil || !q.of.Same(s.selection.snapshot.Find(name)) && !s.Acks.Awaits(name)) {
			return q // after the answer to the last state, or a search would never end
		}
	}
	return nil
}

// Searching implements sequence.Target.
func (s *subscription) Searching() bool {
	if s.quarantines == nil {
		return false
	}
	for _, q := range s.quarantines.byName {
		if q.search != nil {
			return true
		}
	}
	return s.toMake() != nil
}

// recentChanges are the objects of the last pushes, except services, and except pushes of too many
// objects.
type recentChanges struct {
	list [16]recentChange
}

type recentChange struct {
	epoch uint64
	keys  []configstore.ConfigKey
}

// manyChanges is the number of objects above which a push is no hint at any of them, because the
// search would leave out valid objects, for as long as a trial lasts.
const manyChanges limit.Size = 1000

func (r *recentChanges) add(epoch uint64, keys []configstore.ConfigKey) {
	r.list[epoch%uint64(len(r.list))] = recentChange{epoch, keys}
}

// hintsOf returns the keys of a push for recentChanges.
func hintsOf(keys map[configstore.ConfigKey]struct{}) (out []configstore.ConfigKey) {
	for key := range keys {
		if xdsupdate.IsServiceKey(key) {
			continue
		}
		if len(out) == manyChanges.Get() {
			return nil
		}
		out = append(out, key)
	}
	return out
}

// changed returns the objects of the pushes after an epoch, as far as they are known, or nil for a
// client that has accepted nothing.
func (r *recentChanges) changed(after uint64) map[configstore.ConfigKey]struct{} {
	if after == 0 {
		return nil
	}
	out := make(map[configstore.ConfigKey]struct{})
	for _, c := range r.list {
		if c.epoch > after {
			for _, key := range c.keys {
				out[key] = struct{}{}
			}
		}
	}
	return out
}
