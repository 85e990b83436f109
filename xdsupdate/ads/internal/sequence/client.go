// SPDX-License-Identifier: Apache-2.0

// Package sequence decides the order of responses to a client. Plan is a pure function of a moment
// and of a Client: its resources, responses and answers, and its targets. It returns one step, and
// when to plan again. The caller carries the step out, records it with Client.Sent, and plans again
// until no step is left.
//
//	for {
//		plan := sequence.Plan(client, now)
//		client.Memory = plan.Memory
//		if plan.To == nil {
//			break // until an answer, a change, or plan.Look
//		}
//		client.Sent(plan.Step, now)
//	}
//
// The table of rules in rules.go decides which new or changed resource has to wait, and for which
// others; the table in removal.go delays removals. Client.Timeout bounds each wait. Routes behind a
// rejected stricter listener do not wait: the client keeps its state of them. Locks, timers and
// encoding are the caller's.
//
// To add a rule, open one file: rules.go for new and changed resources, removal.go for removals. The rule
// is a row of the table, with its outcome, and a function of the facts that holds for the resources that
// wait. The fields of facts are the input of all rules; a rule adds one, and phase fills it, only if none
// of them says what the rule needs. Then add an example for the row to rules_test.go, which fails
// for a row without one.
package sequence

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/acks"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/difference"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/reference"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/resource"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// Moment is the time, and the number of the last push.
type Moment struct {
	time.Time
	Epoch uint64
}

// Client is the state of a client on one stream. Its owner guards it.
type Client struct {
	// Delta and GRPC are the protocol and the kind of the client.
	Delta, GRPC bool
	// Timeout ends every wait; resources never wait if it is not positive. RemovalDelay is how long clusters
	// stay after a listener has stopped sending connections to them.
	Timeout, RemovalDelay time.Duration
	// Types are the subscriptions, in the order of sending. Four of them have fields, which are nil before Add.
	Types                                    []*Type
	Clusters, Assignments, Listeners, Routes *Type
	// Queue are the responses that the client has not read.
	Queue []Response
	// Warming are the load assignments of clusters that were sent before the client subscribed to any on this stream.
	Warming []string
	Memory  Memory
	nonce   uint64
}

// Response is a response that is ready to be sent.
type Response struct {
	Content        *difference.Content
	Version, Nonce string
}

// Scope is how much a subscription covers.
type Scope uint8

const (
	// Nothing means that no request was handled yet.
	Nothing Scope = iota
	// Names means the subscribed names.
	Names
	// Everything is a wildcard subscription.
	Everything
)

// Target has the resources that a subscription leads the client to.
type Target interface {
	Scope() Scope
	// Snapshot returns the target resources of the client, or nil before they are known.
	Snapshot() *resource.Snapshot
	// Difference returns the contents that bring the client from Type.Has to Snapshot, or nil if there are none.
	Difference() *difference.Difference
	// Named reports whether the client subscribes to a name, and whether its resource is being looked up.
	Named(name string) (subscribed, unsettled bool)
	// Searching reports whether the server is finding out which parts of a resource the client rejects.
	Searching() bool
	// Announcement returns the announcement of a state of a route configuration to clients that have base,
	// or nil if it would be too large. Clients share it.
	Announcement(base, of *resource.State) *Announcement
	// Moved is called after Type.Has was replaced.
	Moved(before *resource.Snapshot)
}

// Type is the state of one subscription of a client.
type Type struct {
	URL string
	Target
	// Has are the resources that the client has if it accepts everything that it was sent; of a rejected
	// resource the state that it was sent. Set it with Have. forgotten is Has before a forced resend, or nil.
	Has, forgotten *resource.Snapshot
	Acks           acks.Tracker
	// Open means that a response may be sent. MustAnswer means that the client gets a response even if
	// it has everything. Returning is that trait of a difference; it ends with the first complete answer.
	// Resumed means that the client has listed the resources that it has.
	Open, MustAnswer, Returning, Resumed bool
	// Apart are lists of resources to be sent again, each list in a response of its own.
	Apart [][]*resource.State
	// Unaccepted are the resources of rejected responses, by name, that the client has accepted in no state
	// since. It is nil if there are none.
	Unaccepted map[string]Unaccepted

	slot slot
}

// Unaccepted is a resource that a client has rejected, and has accepted in no state since.
type Unaccepted struct {
	// Accepted is the state that the client accepted before, and works with; nil if there is none. Refused is the
	// state that it was sent.
	Accepted, Refused *resource.State
	// Text is the text of the last NACK, and Since the time of the first.
	Text  string
	Since time.Time
}

// slot is the index of one of four types.
type slot int

const (
	clusters slot = iota
	assignments
	listeners
	routes
	others
)

// Add adds a subscription.
func (c *Client) Add(t *Type) {
	named := [...]**Type{&c.Clusters, &c.Assignments, &c.Listeners, &c.Routes}
	t.slot = others
	for i, url := range [...]string{envoy.ClusterType, envoy.LoadAssignmentType, envoy.ListenerType, envoy.RouteType} {
		if t.URL == url {
			t.slot, *named[i] = slot(i), t
		}
	}
	c.Types = append(c.Types, t)
	slices.SortFunc(c.Types, func(a, b *Type) int { return cmp.Or(cmp.Compare(a.slot, b.slot), strings.Compare(a.URL, b.URL)) })
}

// Phased reports whether changes come in phases. A client that subscribes to clusters by name chooses the clusters
// from its routes, and is not phased.
func (c *Client) Phased() bool { return c.Clusters != nil && c.Clusters.Scope() == Everything }

// asksByName reports whether it is a gRPC client, which subscribes to the clusters that its routes reference, and
// something may wait.
func (c *Client) asksByName() bool {
	return c.GRPC && c.Timeout > 0 && c.Clusters != nil && c.Clusters.Scope() == Names
}

// Traits returns the traits of the client that make differences of a type differ.
func (c *Client) Traits(t *Type) difference.Traits {
	return difference.Traits{Delta: c.Delta, GRPC: c.GRPC, Returning: t.Returning}
}

func (t *Type) kind() difference.Kind {
	return difference.Kind{TypeURL: t.URL, Wildcard: t.Scope() == Everything}
}

// Have replaces Has.
func (t *Type) Have(s *resource.Snapshot) {
	if before := t.Has; before != s {
		t.Has = s
		t.Moved(before)
	}
}

// Forget has the client sent resources again.
func (t *Type) Forget(names []string) {
	t.Acks.Applied = 0
	if before := t.Has; len(names) > 0 {
		t.Have(before.Without(names))
		t.forgotten = cmp.Or(t.forgotten, before)
	}
}

// Offers reports whether there is a resource of a name for the client.
func (t *Type) Offers(name string) bool {
	now := t.Snapshot()
	return now != nil && now.Find(name).IsPresent()
}

// updating reports whether the client was not sent some new or changed resource.
func (t *Type) updating() bool {
	if t.Scope() == Nothing {
		return false
	}
	if t.Snapshot() == nil || len(t.Apart) > 0 {
		return true
	}
	d := t.Difference()
	return d != nil && d.Update != nil
}

// Overdue reports whether a response has not been answered for too long.
func (c *Client) Overdue(o *acks.Response, now time.Time) bool { return now.Sub(o.SentAt) >= c.Timeout }

// Sent notes that the client is sent a step, and queues its responses.
func (c *Client) Sent(s Step, now Moment) {
	t := s.To
	if s.Ends {
		t.Returning = false
	}
	if s.Content == nil {
		t.Have(s.After)
		return
	}
	c.warm(t, s.Warm)
	before, left := cmp.Or(t.forgotten, t.Has), c.leaves(t, s.Content)
	c.note(t, s.Content, now)
	t.MustAnswer, t.Open, t.forgotten = false, false, nil
	t.Have(s.After)
	if s.Content.Full || len(s.Content.Removed) > 0 {
		t.ForgetGone()
	}
	parts := s.Content.Parts
	if parts == nil {
		parts = []difference.Part{{Content: s.Content, Sum: s.After.Sum}}
	}
	if s.Last && len(t.Apart) == 0 && !t.Searching() {
		if d := t.Difference(); d == nil || d.Update == nil && d.Removal == nil {
			s.Epoch = now.Epoch
		}
	}
	for i, part := range parts {
		c.nonce++
		o := t.Acks.Sent(resource.Version(part.Sum))
		o.Nonce, o.SentIn, o.PushedAt, o.SentAt = strconv.FormatUint(c.nonce, 10), now.Epoch, s.PushedAt, now.Time
		o.Listed, o.Full, o.IsPart, o.Fresh = part.Listed, part.Full, len(parts) > 1, part.Fresh
		o.Before = before
		if i == len(parts)-1 {
			o.Left, o.Epoch = left, s.Epoch
		}
		c.Queue = append(c.Queue, Response{part.Content, o.Version, o.Nonce})
	}
}

// warm has the load assignments of clusters that are sent again sent after them. Envoy waits for them before
// it uses the new state of a cluster, and does not ask for resources that it is subscribed to (xDS protocol,
// "Resource warming").
func (c *Client) warm(t *Type, list []*resource.State) {
	if t != c.Clusters || len(list) == 0 || t.Acks.SentVersion == "" && !t.Resumed {
		return // it has no clusters yet
	}
	eds := c.Assignments
	if eds == nil && !t.Resumed || eds != nil && eds.Has.List.Len() == 0 {
		return
	}
	var names []string
	for _, r := range list {
		if name := r.Assignment(); eds == nil || eds.Has.Find(name) != nil && eds.Offers(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names) // several clusters may share an assignment
	names = slices.Compact(names)
	if eds == nil {
		c.Warming = append(c.Warming, names...)
		return
	}
	eds.Forget(names)
}

// ForgetGone forgets rejected resources that the client does not have.
func (t *Type) ForgetGone() {
	for name := range t.Unaccepted {
		if !t.Has.Find(name).IsPresent() {
			delete(t.Unaccepted, name)
		}
	}
}

// leaves returns the clusters that routes of a gRPC client lead to, and do not in a response.
func (c *Client) leaves(t *Type, content *difference.Content) (left reference.Hashes) {
	if t != c.Routes || !c.asksByName() {
		return nil
	}
	for _, r := range content.Listed {
		left = t.Has.Find(r.Name).References().Clusters.Without(left, r.References().Clusters)
	}
	return left
}

// Answered notes an ACK or NACK of a response.
func (c *Client) Answered(t *Type, o *acks.Response, now time.Time) {
	m := &c.Memory
	if t == c.Listeners && m.switching && len(o.Listed) > 0 {
		m.switching, m.switched = len(t.Acks.Unanswered) > 0, now
	}
	m.drain(o.Left, now, leaveWait)
}
