// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/excerpt"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/acks"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/difference"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/resource"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/sequence"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/wire"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// rejections are the resources that the client of a subscription rejects, the attempts to send them
// again, and the searches for the objects at fault. Clients without rejections have nil.
type rejections struct {
	*subscription
	byName map[string]*rejection
	// retryAt is the time of the next attempt; zero for none.
	retryAt time.Time
	// own is the target of the client in place of the snapshot of its selection.
	own ownTarget
}

// rejection is one resource that a client rejects, or that it has accepted without some objects.
type rejection struct {
	name string
	nack // the last one
	// hash is that of the rejected state, or 0 if the state is not known, except for states of trials. It was rejected
	// that many times since then; 0 times if the client has accepted the resource.
	hash  uint64
	times int
	since time.Time
	next  time.Time // of the attempts
	// varied means that the client was sent the other encoding; see vary.
	varied bool
	// search finds the objects at fault; nil if objects cannot be left out of the resource.
	search *quarantine
}

// nack is a NACK of a resource.
type nack struct {
	version, text string
	at            time.Time
}

// took records the ACK or NACK of a response, and returns the new rejections. It is called with the
// cache's mutex held.
func (s *subscription) took(o *acks.Response, r *received) (fresh []Fault) {
	refused := r.Refused && !o.TellsAbsence()
	switch {
	case s.rejections == nil && !refused:
		return nil
	case s.rejections == nil:
		s.rejections = &rejections{subscription: s, byName: make(map[string]*rejection)}
	}
	l := s.rejections
	if refused {
		fresh = l.refuse(o, r.Text)
	} else {
		l.accept(o)
	}
	if len(l.byName)+len(s.Apart)+len(s.Unaccepted) == 0 {
		s.rejections = nil
	}
	return fresh
}

// accept records that a client accepts the resources of a response, except those in but.
func (l *rejections) accept(o *acks.Response, but ...*resource.State) {
	rejected := func(name string) bool {
		return slices.ContainsFunc(but, func(b *resource.State) bool { return b.Name == name })
	}
	if o.Full {
		for name, r := range l.byName {
			if !rejected(name) {
				l.end(r)
			}
		}
		maps.DeleteFunc(l.Unaccepted, func(name string, _ sequence.Unaccepted) bool { return !rejected(name) })
	}
	for _, res := range o.Listed {
		if rejected(res.Name) {
			continue
		}
		if delete(l.Unaccepted, res.Name); l.byName[res.Name] != nil {
			l.end(l.byName[res.Name])
		}
		if r := l.searched(res.Name); r != nil {
			l.judged(r, res, true)
		}
	}
}

// end records that the client does not reject a resource any more.
func (l *rejections) end(r *rejection) {
	if r.times = 0; r.search == nil {
		delete(l.byName, r.name)
	}
}

// refuse records the rejected resources of a response, or has the resources sent apart until they are known.
func (l *rejections) refuse(o *acks.Response, text string) (fresh []Fault) {
	named := l.namedBy(o, text)
	// Of clusters and listeners Envoy applies the valid ones and names all rejected ones.
	all := len(named) > 0 && (l.URL == envoy.ClusterType || l.URL == envoy.ListenerType) && len(text) < wire.MaxRefusal
	if max(len(l.byName), len(l.Unaccepted)) >= fullTexts {
		text = excerpt.CutTo(text, shortText)
	}
	if all {
		l.note(o, named, text)
	} else {
		l.note(o, o.Listed, text)
	}
	first := len(l.Apart) == 0
	if all {
		l.accept(o, named...)
	}
	if !o.Full && len(o.Listed) > 1 {
		if l.divide(o, named, all); first {
			fresh = []Fault{{Version: o.Version, Text: text}}
		}
		return fresh
	}
	if len(named) == 0 && len(o.Listed) == 1 {
		named = o.Listed
	}
	if len(named) == 0 {
		named = []*resource.State{{}} // an unknown one
	}
	fresh = l.recordAll(named, o, text)
	if !l.Searching() { // else the client is sent other states of the push
		l.Acks.Apply(o)
	}
	return fresh
}

// fullTexts is the number of rejections that are kept with their whole texts, shortText the number of
// bytes that are kept of further texts.
const fullTexts, shortText = 64, 256

// recordAll records that the client rejects resources; one without a name stands for an unknown one of the
// response.
func (l *rejections) recordAll(list []*resource.State, o *acks.Response, text string) (fresh []Fault) {
	now := time.Now()
	for _, res := range list {
		said := nack{o.Version, text, now}
		r := l.byName[res.Name]
		if r == nil {
			r = &rejection{name: res.Name}
			l.byName[res.Name] = r
		}
		if l.searched(res.Name) != nil {
			r.nack = said
			l.judged(r, res, false)
			continue
		}
		if r.search == nil && r.name != "" {
			l.isolate(r, res)
		}
		if r.times == 0 || r.hash != res.Hash {
			r.nack, r.hash, r.times, r.since, r.varied = nack{}, res.Hash, 0, now, false
		}
		if r.text != text {
			fresh = append(fresh, Fault{Name: res.Name, Version: o.Version, Text: text})
		}
		r.nack = said
		r.times++
		delay := min(firstRetry<<min(r.times-1, 16), lastRetry)
		r.next = now.Add(delay + rand.N(delay/4)) //nolint:gosec // no secret
		if l.retryAt.IsZero() || r.next.Before(l.retryAt) {
			l.retryAt = r.next
		}
	}
	return fresh
}

// faults returns the present rejections.
func (l *rejections) faults() (out []Fault) {
	if l == nil {
		return nil
	}
	if l.selection == nil || l.selection.snapshot != nil {
		for name, r := range l.byName {
			if name != "" && !l.Offers(name) {
				l.end(r)
			}
		}
		l.ForgetGone()
	}
	for _, r := range l.byName {
		out = append(out, r.faults()...)
	}
	return out
}

// faults returns a fault for each object that is left out, and one if the client rejects the resource.
func (r *rejection) faults() (out []Fault) {
	status := FaultRejected
	if q := r.search; q != nil {
		for object, n := range q.accepted {
			out = append(out, r.leftOut(object, n))
		}
		switch {
		case q.withoutAny:
			status = FaultUnnamed
		case !q.hopeless:
			status = FaultSearching
		}
	}
	if r.times > 0 || status == FaultSearching && r.search.search != nil {
		out = append(out, Fault{
			Name: r.name, Status: status, Version: r.version, Text: r.text, Since: r.since, Times: r.times, cause: ErrRejected,
		})
	}
	return out
}

// leftOut returns the fault of an object that is left out.
func (r *rejection) leftOut(object configstore.ConfigKey, n nack) Fault {
	return Fault{Name: r.name, Status: FaultLeftOut, Object: object, Version: n.version, Text: n.text, Since: n.at, Times: 1, cause: ErrRejected}
}

// note records that a client has not accepted resources of a response.
func (l *rejections) note(o *acks.Response, list []*resource.State, text string) {
	if l.Unaccepted == nil {
		l.Unaccepted = make(map[string]sequence.Unaccepted)
	}
	for _, res := range list {
		u, again := l.Unaccepted[res.Name]
		if !again {
			u = sequence.Unaccepted{Accepted: o.Before.Find(res.Name), Since: time.Now()}
		}
		u.Refused, u.Text = res, text
		l.Unaccepted[res.Name] = u
	}
}

// ownTarget replaces the snapshot of a selection for one client, because of its quarantines.
type ownTarget struct {
	searches int // the number of resources in quarantine
	// target replaces base, the snapshot of the selection; if sent is set, as long as the client has that
	// snapshot. It is nil if it has to be made again.
	target, base, sent *resource.Snapshot
	differences        difference.Known // to target
}
