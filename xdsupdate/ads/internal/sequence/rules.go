// SPDX-License-Identifier: Apache-2.0

package sequence

import (
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/difference"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/reference"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/resource"
)

// rule keeps new or changed resources back from a client.
type rule struct {
	name  string
	among clients
	types []slot
	holds func(f *facts, r *resource.State) bool
	then  outcome
}

// clients is the kind of the clients that a rule is about.
type clients uint8

const (
	// phased clients subscribe to all clusters, as an Envoy does.
	phased clients = iota
	// byName are gRPC clients, which subscribe to the clusters that their routes reference.
	byName
)

// outcome is the consequence of a rule for a resource.
type outcome uint8

const (
	// waits: the resource is sent when no rule holds for it.
	waits outcome = iota
	// stays: the client keeps its state, and callers of WaitApplied do not wait for the new one.
	stays
	// announced: the client is sent the announcement of the resource first.
	announced
)

// rules are all of them: the first one that holds for a resource counts.
//
//nolint:gochecknoglobals // never changed
var rules = [...]rule{
	{"routes stay while the client rejects the stricter listener in front of them", phased, []slot{routes}, (*facts).isRejected, stays},
	{"clusters come before the listeners and routes that lead to them", phased, []slot{listeners, routes}, (*facts).leadsToComing, waits},
	{"routes come before the listeners that use them", phased, []slot{listeners}, (*facts).usesComing, waits},
	{"listeners that take domains over come before routes give them up", phased, []slot{routes}, (*facts).givesUpEarly, waits},
	{"stricter listeners come before the routes behind them", phased, []slot{routes}, (*facts).isTightened, waits},
	{"clusters are announced before routes lead to them", byName, []slot{routes}, (*facts).isUnready, announced},
	{"clusters stay as they are until calls have left them", byName, []slot{clusters, assignments}, (*facts).isLeft, waits},
}

// facts are the input of the rules, for one type of a client at a moment.
type facts struct {
	*planner
	of     *Type
	update *difference.Content
	among  clients
	// until is the first deadline among the facts; zero if there is none.
	until time.Time
	// unknown means that the clusters that the client cannot use yet are not known; otherwise coming are these.
	unknown bool
	coming  []reference.ClusterNames
	// changing means that there are new or changed listeners that the client does not use yet.
	changing bool
	// The following are sorted names of route configurations. Listeners wait for routes. Stricter
	// listeners in front of tightened are coming. Listeners that are only less strict, in front of
	// loosened, were not sent. The client rejects stricter listeners in front of rejected.
	routes, tightened, loosened, rejected []string
	// unlisted means that the listeners that the client is to have are not known: each may become stricter.
	unlisted bool
	// announced are the announcements of resources that are not ready, by name.
	announced map[string]announcedState
	// leaving are the clusters that calls may still go to, and that new routes do not lead to.
	leaving reference.Hashes
}

// rule returns the first rule that holds for a new or changed resource, or nil.
func (f *facts) rule(r *resource.State) *rule {
	for i := range rules {
		if rule := &rules[i]; rule.among == f.among && slices.Contains(rule.types, f.of.slot) && rule.holds(f, r) {
			return rule
		}
	}
	return nil
}

// factsOf returns the facts that decide about an update of a type, or nil if no rule is about it.
func (p *planner) factsOf(t *Type, update *difference.Content) *facts {
	named := t == p.Clusters || t == p.Assignments || t == p.Routes && t.Scope() != Everything
	among := phased
	switch {
	case p.Phased() && (t == p.Listeners || t == p.Routes):
	case p.asksByName() && named:
		among = byName
	default:
		return nil
	}
	f := &facts{planner: p, of: t, update: update, among: among}
	switch {
	case among == phased:
		f.phase()
	case t != p.Routes:
		f.leaving = f.left()
	case f.waitedLongEnough():
		for _, t := range p.Types { // unanswered responses become overdue, although nothing waits for them any more
			if len(t.Acks.Unanswered) > 0 && !t.Acks.Unanswered[0].Overdue {
				p.lookAt(t.Acks.Unanswered[0].SentAt.Add(p.Timeout))
			}
		}
		return nil
	default:
		f.announced = make(map[string]announcedState)
	}
	return f
}

// phase finds the facts about listeners or routes of a phased client.
func (f *facts) phase() {
	isRoutes := f.of == f.Routes
	if isRoutes {
		f.rejected = f.rejectedTightened()
	}
	if f.waitedLongEnough() { // again and again for something else
		return
	}
	f.findComing()
	if isRoutes {
		f.changing = f.changesListeners()
		f.findTightened()
	} else {
		f.routes = f.comingRoutes()
	}
}

// waitedLongEnough reports whether something of the type has waited as long as it may.
func (f *facts) waitedLongEnough() bool {
	since := f.m.of(f.of).since
	return !since.IsZero() && f.isPast(since.Add(f.Timeout))
}

// each visits the resources that are new to the client, or changed.
func (f *facts) each(visit func(r *resource.State)) {
	if f.among == phased {
		f.of.changed(visit)
		return
	}
	for _, r := range f.update.Listed {
		visit(r)
	}
}

// changed visits the resources that are new to the client.
func (t *Type) changed(visit func(r *resource.State)) {
	resource.Compare(t.Has, t.Snapshot(), func(old, now *resource.State) {
		if now.IsPresent() && (old == nil || !now.Same(old)) {
			visit(now)
		}
	})
}

// isIn reports whether a name is in a sorted list.
func isIn(names []string, name string) bool {
	_, found := slices.BinarySearch(names, name)
	return found
}

// by notes a deadline.
func (f *facts) by(at time.Time) { f.until = earlier(f.until, at) }

func (f *facts) leadsToComing(r *resource.State) bool {
	for _, names := range f.coming {
		for range names.Among(r.References().Clusters) {
			return true
		}
	}
	return f.unknown
}

func (f *facts) usesComing(r *resource.State) bool {
	return len(f.routes) > 0 && slices.ContainsFunc(r.References().Routes, func(name string) bool { return isIn(f.routes, name) })
}

func (f *facts) givesUpEarly(r *resource.State) bool {
	return f.changing && !isIn(f.loosened, r.Name) && f.givesUpDomains(r)
}

// givesUpDomains reports whether a route configuration has no routes for a domain that it has at the client.
func (p *planner) givesUpDomains(r *resource.State) bool {
	return p.Routes.Has.Find(r.Name).References().Domains.Exceed(r.References().Domains)
}

// isTightened reports whether routes wait for a stricter listener. Routes that the client does not have do not:
// listeners may wait for them.
func (f *facts) isTightened(r *resource.State) bool {
	return (f.unlisted || isIn(f.tightened, r.Name)) && f.Routes.Has.Find(r.Name) != nil
}

func (f *facts) isRejected(r *resource.State) bool {
	return isIn(f.rejected, r.Name) && f.Routes.Has.Find(r.Name) != nil
}

func (f *facts) isLeft(r *resource.State) bool {
	return f.leaving.Has(xxhash.Sum64String(r.Name)) && f.of.Has.Find(r.Name).IsPresent()
}

// needs adds the names of the clusters that keep a resource back.
func (f *facts) needs(to []string, r *resource.State) []string {
	for _, names := range f.coming {
		to = slices.AppendSeq(to, names.Among(r.References().Clusters))
	}
	return to
}

// isComing reports whether the client cannot use a cluster yet.
func (f *facts) isComing(name string) bool {
	return f.unknown || slices.ContainsFunc(f.coming, func(names reference.ClusterNames) bool { return names.Has(name) })
}
