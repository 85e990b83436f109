// SPDX-License-Identifier: Apache-2.0

package sequence

import (
	"slices"
	"time"

	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/acks"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/difference"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/reference"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/resource"
)

// Result is the result of a plan.
type Result struct {
	Step
	// Look is when to plan again if nothing happens before; zero for never.
	Look time.Time
	// Memory replaces that of the client.
	Memory Memory
}

// Step is one response to a client.
type Step struct {
	// To is the subscription, or nil if there is nothing to send.
	To *Type
	// Content is the response, or nil if the client has After without one. Apart means that the first of
	// To.Apart are sent instead.
	Content *difference.Content
	After   *resource.Snapshot
	Apart   bool
	// Last means that no other response to the same difference follows, and Ends that the client is not
	// returning any more.
	Last, Ends bool
	// Epoch is the push that the client has applied completely with this step, or 0.
	Epoch uint64
	// Warm are clusters whose load assignments the client is sent again.
	Warm []*resource.State
	// PushedAt is when the push was requested that made the response; the caller sets it.
	PushedAt time.Time
}

// planner makes one plan.
type planner struct {
	*Client
	m    Memory
	now  Moment
	look time.Time
}

// Plan returns the next response to a client: first new or changed resources, clusters before the listeners and
// routes that may lead to them; then removals, in the opposite order. It does not modify the client.
func Plan(c *Client, now Moment) Result {
	if c.isUpToDate() {
		return Result{Memory: c.Memory}
	}
	p := &planner{Client: c, m: c.Memory, now: now}
	step := p.step()
	return Result{step, p.look, p.m}
}

// isUpToDate reports whether there is no step to plan, as for most clients after most changes: they
// have all resources, or have not answered. Clusters are planned ahead of the answer.
func (c *Client) isUpToDate() bool {
	if c.Memory.removal != nil || c.Clusters != nil && c.Clusters.Resumed && c.Memory.returned.IsZero() {
		return false
	}
	return !slices.ContainsFunc(c.Types, func(t *Type) bool {
		return (t.Open || t == c.Clusters) && (t.MustAnswer || len(t.Apart) > 0 || t.Difference() != nil)
	})
}

func (p *planner) step() Step {
	phased := p.Phased()
	if phased {
		if s := p.removeFirst(); s.To != nil {
			return s
		}
	}
	for _, t := range p.Types {
		if phased && t == p.Listeners && p.Routes != nil {
			// Routes that listeners will use come first; others wait for the listeners.
			if s := p.update(p.Routes); s.To != nil {
				return s
			}
		}
		if s := p.update(t); s.To != nil {
			return s
		}
	}
	leading := false // resources may still reference removed clusters
	for _, t := range slices.Backward(p.Types) {
		if (t == p.Clusters || t == p.Assignments) && (phased || leading) {
			continue
		}
		if s := p.remove(t); s.To != nil {
			return s
		}
		leading = leading || reference.HasClusters(t.URL) && !p.m.complete(t)
	}
	if !phased {
		return Step{}
	}
	if s := p.removeClusters(); s.To != nil || p.Assignments == nil {
		return s
	}
	return p.removeAssignments()
}

// lookAt plans again at a time; zero is never.
func (p *planner) lookAt(at time.Time) { p.look = earlier(p.look, at) }

// earlier returns the earlier of two times that is not zero.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

func (p *planner) isPast(at time.Time) bool { return !at.After(p.now.Time) }

func (p *planner) isOverdue(o *acks.Response) bool { return p.Overdue(o, p.now.Time) }

// update sends new or changed resources.
func (p *planner) update(t *Type) Step {
	if !t.Open && !p.sendsUnanswered(t) || t.Snapshot() == nil {
		return Step{}
	}
	if len(t.Apart) > 0 {
		return Step{To: t, Apart: true}
	}
	d := t.Difference()
	if d != nil && d.Update != nil {
		if s, waits := p.updateSome(t, d.Update); waits {
			return s
		}
		last := !d.More && d.Removal == nil
		return Step{To: t, Content: d.Update, After: d.Update.After, Last: last, Ends: last, Warm: d.Update.Listed}
	}
	switch {
	case t.MustAnswer:
		return p.nothingNew(t)
	case d != nil && d.Removal == nil && (t.Returning || !isEqual(t.Has, d.Rest)):
		return Step{To: t, After: d.Rest, Ends: true}
	default:
		return Step{}
	}
}

// nothingNew answers a client that has everything.
func (p *planner) nothingNew(t *Type) Step {
	return Step{To: t, Content: t.kind().NewContent(nil, t.Has, p.Traits(t)), After: t.Has, Last: true}
}

// isEqual reports whether two snapshots have the same states.
func isEqual(a, b *resource.Snapshot) bool {
	if a == b {
		return true
	}
	equal := a.Sum == b.Sum && a.List.Len() == b.List.Len()
	if equal {
		resource.Compare(a, b, func(a, b *resource.State) { equal = equal && a == b })
	}
	return equal
}

// remove sends removals.
func (p *planner) remove(t *Type) Step {
	if !t.Open {
		return Step{}
	}
	d := t.Difference()
	if d == nil || d.Update != nil || d.Removal == nil {
		return Step{}
	}
	if len(d.Removal.Removed) == 0 { // assignments become empty
		if s, waits := p.updateSome(t, d.Removal); waits {
			return s
		}
	}
	return Step{To: t, Content: d.Removal, After: d.Removal.After, Last: true, Ends: true}
}

// updateSome sends the new or changed resources that no rule holds back, and reports whether a rule holds any
// back.
func (p *planner) updateSome(t *Type, update *difference.Content) (s Step, waits bool) {
	f := p.factsOf(t, update)
	if f == nil {
		return s, false
	}
	if slices.ContainsFunc(update.Listed, func(r *resource.State) bool { return f.rule(r) != nil }) {
		return f.some(), true
	}
	w := p.m.of(t)
	w.held, w.since = nil, time.Time{}
	if t == p.Routes {
		p.m.announced = nil
	}
	return s, false
}

// some sends the resources that no rule holds back, and announcements of others.
func (f *facts) some() Step {
	t := f.of
	var list []*resource.State
	var needs []string
	waits := false
	f.each(func(r *resource.State) {
		rule := f.rule(r)
		switch {
		case rule == nil:
			list = append(list, r)
			return
		case rule.then == stays:
			return
		case rule.then == announced:
			if a := f.announced[r.Name]; a.sent != t.Has.Find(r.Name) {
				list = append(list, a.sent)
			}
		default:
			needs = f.needs(needs, r)
		}
		waits = true
	})
	f.wait(waits)
	if waits && t.kind().FullState() && !f.Delta && t.Has.List.Len() == 0 {
		// The client takes resources for removed that its first response does not list: it may have listeners of a
		// stream before.
		return Step{}
	}
	list, epoch := f.addHeld(list, needs, waits)
	switch {
	case len(list) > 0:
		return f.part(list, epoch)
	case waits:
		return Step{}
	}
	f.m.linger(t)
	if t.MustAnswer {
		return f.nothingNew(t)
	}
	return Step{}
}

// wait notes whether something waits.
func (f *facts) wait(waits bool) {
	w := f.m.of(f.of)
	w.from, w.to = nil, nil
	f.lookAt(f.until)
	if f.of == f.Routes {
		f.m.announced = f.announced
	}
	if f.of != f.Routes && f.of != f.Listeners {
		return // clusters that calls leave stay as long as calls may go there
	}
	switch {
	case !waits:
		w.held, w.since = nil, time.Time{}
	case w.since.IsZero():
		w.since = f.now.Time
	}
	if waits {
		f.lookAt(w.since.Add(f.Timeout))
	}
}

// part sends some of the new or changed resources. With them the client has applied an epoch completely, or 0 for
// none.
func (f *facts) part(list []*resource.State, epoch uint64) Step {
	t, traits := f.of, f.Traits(f.of)
	if most := t.kind().AtOnce(traits); len(list) > most {
		list, epoch = list[:most], 0
	}
	slices.SortFunc(list, resource.CompareNames)
	target, edits := t.Snapshot(), make([]resource.Edit, len(list))
	for i, r := range list {
		if edits[i] = (resource.Edit{Name: r.Name, Resource: r}); !target.Find(r.Name).IsPresent() {
			edits[i].Resource = target.Find(r.Name) // an empty assignment
		}
	}
	content := t.kind().NewContent(list, t.Has.With(edits), traits)
	content.Divide(t.Has, traits)
	return Step{To: t, Content: content, After: content.After, Epoch: epoch, Warm: list}
}

// addHeld adds the resources of a held state to a list, if it can be sent now, and returns the epoch that the client
// has then applied completely, or 0. Without a held state, the present one is held from now on.
func (f *facts) addHeld(list []*resource.State, needs []string, waits bool) (out []*resource.State, epoch uint64) {
	w := f.m.of(f.of)
	if h := w.held; h != nil {
		switch usable, gone := f.canUse(h.needs); {
		case gone:
			w.held = nil
		case usable:
			w.held, w.since = nil, time.Time{}
			list, epoch = f.release(h, list)
		}
	}
	if w.held == nil && waits && !f.unknown && len(needs) > 0 {
		w.held = &held{target: f.of.Snapshot(), epoch: f.now.Epoch, needs: needs}
		if f.of == f.Routes && f.Listeners != nil {
			w.held.listeners = f.Listeners.Snapshot()
		}
	}
	return list, epoch
}

// canUse reports whether a client can use clusters, or one of them has gone meanwhile, with its endpoints.
func (f *facts) canUse(needs []string) (usable, gone bool) {
	for _, name := range needs {
		if f.isComing(name) {
			return false, false
		}
		if now := f.Clusters.Snapshot(); !f.Clusters.Has.Find(name).IsPresent() || now != nil && !now.Find(name).IsPresent() {
			return false, true
		}
	}
	return true, false
}

// release adds the resources of a held state to a list that has newer ones.
func (f *facts) release(h *held, list []*resource.State) (out []*resource.State, epoch uint64) {
	newer := make(map[string]bool, len(list))
	for _, r := range list {
		newer[r.Name] = true
	}
	target, complete := f.of.Snapshot(), true
	resource.Compare(f.of.Has, h.target, func(old, now *resource.State) {
		switch {
		case !now.IsPresent():
			complete = complete && old == nil
		case newer[now.Name] || old != nil && now.Same(old):
		case target.Find(now.Name) == nil || f.rule(now) != nil || f.isExposed(h, now): // since it was held
			complete = false
		default:
			list = append(list, now)
		}
	})
	if complete {
		epoch = h.epoch
	}
	return list, epoch
}

// isExposed reports whether the client has a listener in a less strict state than when the routes were held.
func (f *facts) isExposed(h *held, routes *resource.State) bool {
	if h.listeners == nil {
		return false
	}
	for l := range h.listeners.List.All() {
		has := f.Listeners.Has.Find(l.Name)
		if slices.Contains(l.References().Routes, routes.Name) && slices.Contains(has.References().Tightened(l.References()), routes.Name) {
			return true
		}
	}
	return false
}
