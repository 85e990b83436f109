// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pilotkit/pilotkit/internal/excerpt"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/acks"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/resource"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/sequence"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/wire"
)

// Refusal is a resource that a proxy rejects: it uses the state that it accepted before, if there
// was one. The refusal ends when the proxy accepts a state of that resource, or the resource is
// deleted.
type Refusal struct {
	// Name is the name of the resource, or "" if the proxy named none in a response that cannot be
	// divided further.
	Name string `json:"name"`
	// Version is the version of the response, Error the text of the NACK: the first 4 KiB of a long
	// text, with its length, and less if the proxy rejects more than 64 resources of a type.
	Version string `json:"version"`
	Error   string `json:"error"`
	// LeftOut are the objects without whose contributions the proxy has accepted the resource,
	// sorted by kind, namespace and name; nil if it has not.
	LeftOut []LeftOut `json:"left_out,omitempty"`
	// WithoutAny means that the proxy also rejects the resource without the contribution of any
	// object, so that no object can be named.
	WithoutAny bool `json:"without_any,omitempty"`
	// Since is when this state was rejected first, Times how often it was rejected.
	Since time.Time `json:"since,omitzero"`
	Times int       `json:"times,omitempty"`
}

// refusals are the rejected resources of a subscription, and the attempts to send them again. Clients without
// rejections have nil.
type refusals struct {
	byName map[string]*refusal
	// retry is set to the next attempt.
	retry alarm
}

// refusal is one state of a resource that is rejected.
type refusal struct {
	Refusal
	hash uint64 // of the state, or 0 if it is not known
	next time.Time
	// varied means that the client was sent the other encoding; see vary.
	varied bool
}

// took records the ACK or NACK of a response, and returns the new refusals. It is called with the
// cache's mutex held.
func (s *subscription) took(o *acks.Response, r *received) (fresh []Refusal) {
	refused := r.Refused && !o.TellsAbsence()
	switch {
	case !refused && s.refusals == nil:
		s.acceptStates(o)
		return nil
	case !refused:
		s.accept(o)
	default:
		if s.refusals == nil {
			s.refusals = &refusals{byName: make(map[string]*refusal)}
		}
		fresh = s.refuse(o, r.Text)
	}
	if len(s.refusals.byName)+len(s.Apart)+len(s.Unaccepted) == 0 {
		s.refusals.stop(s.conn)
		s.refusals = nil
	}
	return fresh
}

// accept records that a client accepts the resources of a response, except those in but.
func (s *subscription) accept(o *acks.Response, but ...*resource.State) {
	rejected := func(name string) bool {
		return slices.ContainsFunc(but, func(b *resource.State) bool { return b.Name == name })
	}
	if o.Full {
		maps.DeleteFunc(s.refusals.byName, func(name string, _ *refusal) bool { return !rejected(name) })
		maps.DeleteFunc(s.Unaccepted, func(name string, _ sequence.Unaccepted) bool { return !rejected(name) })
	} else {
		for _, res := range o.Listed {
			if len(s.refusals.byName)+len(s.Unaccepted) > 0 && !rejected(res.Name) {
				delete(s.refusals.byName, res.Name)
				delete(s.Unaccepted, res.Name)
			}
		}
	}
	s.acceptStates(o, but...)
}

// saysAll reports whether a client that rejects the named resources of a response accepts the
// others: of clusters and listeners, Envoy applies the valid ones and names all rejected ones.
func (s *subscription) saysAll(named []*resource.State, text string) bool {
	return len(named) > 0 && !stopsAtRefused(s.URL) && len(text) < wire.MaxRefusal
}

// refuse records the rejected resources of a response, or has the resources sent apart until they are known.
func (s *subscription) refuse(o *acks.Response, text string) (fresh []Refusal) {
	named := s.namedBy(o, text)
	if s.saysAll(named, text) {
		s.note(o, named, text)
	} else {
		s.note(o, o.Listed, text)
	}
	if !o.Full && len(o.Listed) > 1 {
		first := len(s.Apart) == 0
		if s.divide(o, named, text); first {
			fresh = []Refusal{{Version: o.Version, Error: text}}
		}
		return fresh
	}
	if s.saysAll(named, text) {
		s.accept(o, named...)
	}
	if len(named) == 0 {
		named = []*resource.State{s.only(o)}
	}
	fresh = s.recordAll(named, o, text)
	if !s.Searching() { // else the client is sent other states of the push
		s.Acks.Apply(o)
	}
	return fresh
}

// only returns the only resource of a response that is new to the client, or nil if there are
// several or none.
func (s *subscription) only(o *acks.Response) *resource.State {
	if len(o.Listed) == 1 {
		return o.Listed[0]
	}
	return nil
}

// fullTexts is the number of refusals that are kept with their whole texts, shortText the number of
// bytes that are kept of further texts.
const fullTexts, shortText = 64, 256

// recordAll records that the client rejects resources; nil stands for an unknown one of the
// response.
func (s *subscription) recordAll(list []*resource.State, o *acks.Response, text string) (fresh []Refusal) {
	now := time.Now()
	if len(s.refusals.byName) >= fullTexts {
		text = excerpt.CutTo(text, shortText)
	}
	for _, res := range list {
		name, hash := "", uint64(0)
		if res != nil {
			if s.refuseState(res, o, text) {
				continue
			}
			name, hash = res.Name, res.Hash
		}
		old := s.refusals.byName[name]
		if old == nil || old.hash != hash {
			old = &refusal{Refusal: Refusal{Name: name, Since: now}, hash: hash}
			s.refusals.byName[name] = old
		}
		if old.Error != text {
			fresh = append(fresh, Refusal{Name: name, Version: o.Version, Error: text})
		}
		old.Version, old.Error, old.WithoutAny = o.Version, text, s.refusedWithoutAny(name)
		old.Times++
		old.next = now.Add(backOff(old.Times))
		s.schedule(old.next)
	}
	return fresh
}

// leftOut returns the refusals of resources that the client has without some contributions.
func (s *subscription) leftOut() (out []Refusal) {
	if s.quarantines == nil {
		return nil
	}
	for _, q := range s.quarantines.byName {
		out = append(out, q.refusals()...)
	}
	slices.SortFunc(out, func(a, b Refusal) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// standing returns the present refusals, sorted by name, or nil if there are none.
func (s *subscription) standing() []Refusal {
	if s.refusals == nil {
		return s.leftOut()
	}
	if s.selection == nil || s.selection.snapshot != nil {
		maps.DeleteFunc(s.refusals.byName, func(name string, _ *refusal) bool { return name != "" && !s.Offers(name) })
		s.ForgetGone()
	}
	out := s.leftOut()
	for _, r := range s.refusals.byName {
		out = append(out, r.Refusal)
	}
	slices.SortFunc(out, func(a, b Refusal) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// errorsOf returns the errors of WaitApplied for a refusal.
func (s *subscription) errorsOf(r Refusal) []error {
	proxy, typeURL := s.conn.proxy.ID, s.URL
	if r.LeftOut == nil {
		how := ""
		if r.WithoutAny {
			how = ", also without the contribution of any object"
		}
		return []error{fmt.Errorf("%s: %s %s: %w%s: %s", proxy, typeURL, cmp.Or(r.Name, r.Version), ErrRejected, how, r.Error)}
	}
	var out []error
	for _, l := range r.LeftOut {
		out = append(out, s.leftOutError(r.Name, l))
	}
	return out
}

// leftOutError returns the error for an object that the client rejects.
func (s *subscription) leftOutError(name string, l LeftOut) error {
	return &LeftOutError{
		Proxy: s.conn.proxy.ID, TypeURL: s.URL, Resource: name, Object: l.Object, Err: fmt.Errorf("%w: %s", ErrRejected, l.Error),
	}
}

// latest returns the last refusal.
func latest(list []Refusal) (out Refusal) {
	for _, r := range list {
		if cmp.Or(r.Since.Compare(out.Since), strings.Compare(out.Name, r.Name)) > 0 {
			out = r
		}
	}
	return out
}

// note records that a client has not accepted resources of a response.
func (s *subscription) note(o *acks.Response, list []*resource.State, text string) {
	if len(s.Unaccepted) >= fullTexts {
		text = excerpt.CutTo(text, shortText)
	}
	if s.Unaccepted == nil {
		s.Unaccepted = make(map[string]sequence.Unaccepted)
	}
	for _, res := range list {
		u, again := s.Unaccepted[res.Name]
		if !again {
			u = sequence.Unaccepted{Accepted: o.Before.Find(res.Name), Since: time.Now()}
		}
		u.Refused, u.Text = res, text
		s.Unaccepted[res.Name] = u
	}
}
