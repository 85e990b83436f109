// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"maps"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/resource"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/trial"
)

// substitution makes the state that replaces a rejected resource for a client, without the lock.
type substitution struct {
	list *rejections
	*rejection
	q    *quarantine     // of the rejection when it began
	of   *resource.State // the state that it replaces
	from resolver
	out  map[Contribution]Omission

	made  *resource.State
	parts []Contribution
}

// substitute builds one state of a resource in quarantine, if there is one to be built. ok is false
// if the stream has ended. The caller holds sending.
func (s *stream) substitute() (ok bool) {
	c := s.conn.cache
	var job *substitution
	c.locked(func() { job = s.conn.substitution() })
	if job == nil {
		return true
	}
	done := s.await(trialWork + len(job.q.parts))
	if done == nil {
		return false
	}
	job.make()
	done()
	c.locked(func() {
		if !s.conn.closed {
			job.install()
			s.conn.flush()
			c.progressed()
		}
	})
	return true
}

// substitution returns the next one, or nil if no resource is to be built for the client.
func (c *connection) substitution() *substitution {
	if c.closed {
		return nil
	}
	for s := range c.all() {
		if r := s.rejections.toMake(); r != nil {
			q := r.search
			return &substitution{
				list: s.rejections, rejection: r, q: q, of: s.selection.snapshot.Find(r.name), from: c.cache.resolver(c.view),
				out: q.without(),
			}
		}
	}
	return nil
}

// make builds the resource. made stays nil if that is not possible.
func (j *substitution) make() {
	typeURL, name := j.list.URL, j.name
	of, a, _ := j.from.layers.answer(j.from.view, typeURL, name)
	if a.Without == nil {
		return
	}
	r := &resource.State{TypeURL: typeURL, Name: name, Build: func() (proto.Message, error) {
		m, err := of.build(typeURL, func() (built proto.Message, failed error) {
			built, j.parts, failed = a.Without(func(c Contribution) Omission { return j.out[c] })
			return built, failed
		})
		if m != nil {
			err = nil // errors about omitted parts are reported with the resource itself
		}
		return m, err
	}}
	if j.from.make(r); r.Exists() {
		j.made = r
	}
}

// install has the new state sent, unless the client is to have another one now.
func (j *substitution) install() {
	l, q := j.list, j.q
	if j.search != q || l.rejections != l || l.byName[j.name] != j.rejection || l.selection == nil || l.selection.snapshot == nil {
		return
	}
	if now := l.selection.snapshot.Find(j.name); now == nil || !now.Same(j.of) {
		return // build again
	}
	l.own.target = nil
	fresh := q.of == nil || !q.of.Same(j.of)
	q.of = j.of
	due := q.become(j.parts, time.Now())
	l.conn.wakeAt(due)
	still := trial.SetOf(q.parts)
	maps.DeleteFunc(q.left, func(c Contribution, _ omitted) bool { return !still.Has(c) })
	switch {
	case j.made == nil || len(j.parts) == 0:
		l.progressed(j.rejection, false, true)
	case fresh && q.search != nil:
		q.search.Become(q.included())
		q.made = nil
	case !due.IsZero(): // it was built with a contribution that has to wait
		q.made = nil
	default:
		q.made = j.made
		if q.made.Hash == q.last.hash {
			l.judged(j.rejection, q.made, q.last.accepted) // the client has answered this state
		}
	}
}
