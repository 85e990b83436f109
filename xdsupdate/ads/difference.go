// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"slices"
	"sync"
	"weak"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/reference"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/resource"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/wire"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// responseBytes is how much a response holds at most, but for one resource that is
// larger, where the protocol allows to divide it: gRPC takes messages of up to 4 MiB by
// default.
const responseBytes = 2 << 20

// clientTraits is what makes clients that have the same differ in what they are sent.
type clientTraits struct {
	delta bool
	// grpc clients keep what has gone: see the package comment.
	grpc bool
	// returning: nothing is known of what the client has. With SotW there may be
	// assignments that have gone; with delta each name has to be answered.
	returning bool
}

// differenceKey finds a difference to the snapshot of a selection.
type differenceKey struct {
	from *resource.Snapshot
	clientTraits
}

// differences are those to the snapshot of a selection, by what clients have. Mostly
// all clients have the same, so that the first one has its own place.
type differences struct {
	firstKey differenceKey
	first    *difference
	others   map[differenceKey]*difference
}

func (d *differences) get(key differenceKey) *difference {
	if d.first != nil && d.firstKey == key {
		return d.first
	}
	return d.others[key]
}

func (d *differences) add(key differenceKey, made *difference) {
	if d.first == nil {
		d.firstKey, d.first = key, made
		return
	}
	if d.others == nil {
		d.others = map[differenceKey]*difference{}
	}
	d.others[key] = made
}

// difference is what brings a client from one snapshot to another. It is made
// once for all clients of a selection, and immutable.
type difference struct {
	// update is sent first; nil: nothing is new. After it there may be more to
	// send, then more is set and the rest is another difference.
	update *content
	more   bool
	// removal is sent when nothing may use any more what has gone; nil: nothing
	// has gone that the client is sent.
	removal *content
	// rest is what the client has when nothing, or nothing more, is to be sent.
	rest *resource.Snapshot
}

// content is the content of one response.
type content struct {
	typeURL string
	delta   bool
	// listed are the resources in it, unless full is set: then everything in after
	// is, because the client takes what is not listed for removed.
	listed []*resource.State
	full   bool
	// removed are the names in a delta response.
	removed []string
	// fresh are the clusters of listed that the client does not have.
	fresh reference.ClusterNames
	// after is what the client has then.
	after *resource.Snapshot
	// parts are the content in responses of their own; nil: it is in one.
	parts []separated

	once sync.Once
	wire []byte // the resources, encoded as a field of the response
}

// separated is a part of a content. With it, and those before it, what the client has
// sums up to sum.
type separated struct {
	*content
	sum uint64
}

// fullState reports whether a SotW response has to list everything that the
// client is subscribed to, because what it does not list is taken for removed:
// clusters and listeners (xDS protocol, "Deleting resources"), and whatever is
// not subscribed by name.
func fullState(typeURL string, wildcard bool) bool {
	return wildcard || typeURL == envoy.ClusterType || typeURL == envoy.ListenerType
}

func (s selectionState) fullState() bool { return fullState(s.typeURL, s.wildcard) }

// difference returns what a client that has from is to be sent.
func (s *selection) difference(from *resource.Snapshot, d clientTraits) *difference {
	key := differenceKey{from, d}
	found := s.known(key)
	if found == nil {
		found = s.state().newDifference(from, d)
	}
	s.remember(key, found)
	return found
}

// known returns a difference to the snapshot that was found before, or nil.
func (s *selection) known(key differenceKey) *difference {
	if found := s.differences.get(key); found != nil || key.from.List.Len() > 0 {
		return found
	}
	return s.first[key.clientTraits].Value()
}

// remember keeps a difference to the snapshot for other clients.
func (s *selection) remember(key differenceKey, made *difference) {
	if s.differences.get(key) == made {
		return
	}
	s.differences.add(key, made)
	if key.from.List.Len() == 0 {
		if s.first == nil {
			s.first = make(map[clientTraits]weak.Pointer[difference])
		}
		s.first[key.clientTraits] = weak.Make(made)
	}
}

// selectionState is what a selection is and has at one moment. It is immutable, so that
// differences are found without the lock.
type selectionState struct {
	typeURL  string
	wildcard bool
	topics   []*topic
	snapshot *resource.Snapshot
}

// state returns what the selection is and has now. It is called with the cache's mutex
// held.
func (s *selection) state() selectionState {
	return selectionState{s.typeURL, s.wildcard, s.topics, s.snapshot}
}

// newDifference decides what becomes of each name.
//
//	the client has   | there is      | it is sent
//	-----------------|---------------|-------------------------------------------
//	anything         | another state | the state
//	a state          | the same      | nothing
//	anything else    | the same      | the state
//	a state          | none          | by removalOf: its removal, an empty assignment,
//	                 |               | or nothing, and it keeps the state
//	unknown          | none          | its removal; with SotW an empty assignment
//	nothing          | none          | nothing; if it is returning the removal, or
//	                 |               | an empty assignment; see tellsAbsent
func (s selectionState) newDifference(from *resource.Snapshot, d clientTraits) *difference {
	var changed, fresh, emptied []*resource.State
	clusters := s.typeURL == envoy.ClusterType && s.wildcard
	var removed []string
	var edits []resource.Edit // of s.snapshot, to what the client has in the end
	size, more, divisible, most := 0, false, d.delta || !s.fullState(), s.atOnce(d)
	resource.Compare(from, s.snapshot, func(old, now *resource.State) {
		switch {
		case now != nil && now.Marker == resource.Present:
			if old != nil && now.Same(old) {
				return
			}
			if more = more || divisible && size > 0 && (size+len(now.Value) > responseBytes || len(changed) == most); !more {
				changed = append(changed, now)
				size += len(now.Value)
				if clusters && old == nil {
					fresh = append(fresh, now)
				}
			}
		case old == nil:
			if d.returning && !d.delta {
				emptied = append(emptied, emptyAssignment(now.Name))
			}
		case old.Marker == resource.Tombstone:
		default:
			switch s.removalOf(old, now, d) {
			case isRemoved:
				removed = append(removed, old.Name)
			case isEmptied:
				emptied = append(emptied, emptyAssignment(old.Name))
			case isKept:
				edits = append(edits, resource.Edit{Name: old.Name, Resource: old})
			}
		}
	})
	if d.delta && d.returning {
		removed = append(removed, s.absent(edits, emptied)...)
		slices.Sort(removed)
		removed = slices.Compact(removed)
	}
	if s.tellsAbsent(d) && !more {
		s.tell(from, &edits, &changed)
	}
	out := &difference{rest: s.snapshot.With(edits), more: more}
	if len(changed) > 0 {
		out.update = s.newContent(changed, d)
		out.update.fresh = reference.NewClusterNames(len(fresh), resource.Names(fresh))
		if out.update.after = out.rest; more || len(removed)+len(emptied) > 0 {
			out.update.after = from.WithAll(changed)
		}
		out.update.divide(from, d)
	}
	if len(removed)+len(emptied) > 0 {
		out.removal = s.newContent(emptied, d)
		out.removal.removed, out.removal.after = removed, out.rest
	}
	return out
}

// absent returns the names that are subscribed and of which there is nothing, but
// for those of resources that the client keeps, or is sent an empty state of: they
// have gone since its first response.
func (s selectionState) absent(kept []resource.Edit, emptied []*resource.State) []string {
	out := s.missing()
	if len(kept)+len(emptied) == 0 {
		return out
	}
	except := make(map[string]struct{}, len(kept)+len(emptied))
	for _, e := range kept {
		except[e.Name] = struct{}{}
	}
	for _, r := range emptied {
		except[r.Name] = struct{}{}
	}
	return slices.DeleteFunc(out, func(name string) bool {
		_, ok := except[name]
		return ok
	})
}

// missing returns the names that are subscribed and of which there is nothing.
func (s selectionState) missing() []string {
	var out []string
	topics := s.topics
	for r := range s.snapshot.List.All() {
		for len(topics) > 0 && topics[0].Name < r.Name {
			out, topics = append(out, topics[0].Name), topics[1:]
		}
		if len(topics) > 0 && topics[0].Name == r.Name {
			if topics = topics[1:]; r.Marker != resource.Present {
				out = append(out, r.Name)
			}
		}
	}
	for _, t := range topics {
		out = append(out, t.Name)
	}
	return out
}

// removalAction is what becomes of a resource that a client has and that is gone.
type removalAction int

const (
	isRemoved removalAction = iota
	isEmptied
	isKept
)

// removalOf decides what becomes of a resource that a client has, when there is none
// or, for an assignment, a tombstone.
func (s selectionState) removalOf(old, now *resource.State, d clientTraits) removalAction {
	assignment := s.typeURL == envoy.LoadAssignmentType
	switch {
	case old.Marker == resource.Unknown && assignment && !d.delta:
		return isEmptied
	case old.Marker == resource.Unknown:
		return isRemoved
	case old.Marker == resource.Absent:
		return isKept
	case assignment && !s.wildcard && (d.grpc || !d.delta):
		if now == nil {
			return isKept
		}
		return isEmptied
	case s.wildcard:
		return isRemoved
	case d.grpc && grpcKeeps(s.typeURL, old.Name), !d.delta && !s.fullState():
		return isKept
	default:
		return isRemoved
	}
}

// grpcKeeps reports whether gRPC clients keep a resource that has gone. The listener of a server is not
// kept: it says who may call, which nobody would bring up to date.
func grpcKeeps(typeURL, name string) bool {
	_, inbound, _ := envoy.ParseInboundName(name)
	return !inbound && (typeURL == envoy.ClusterType || typeURL == envoy.ListenerType || typeURL == envoy.RouteType)
}

func emptyAssignment(name string) *resource.State {
	r := &resource.State{TypeURL: envoy.LoadAssignmentType, Name: name, Build: func() (proto.Message, error) {
		return &endpointv3.ClusterLoadAssignment{ClusterName: name}, nil
	}}
	r.Exists()
	return r
}

func (s selectionState) newContent(resources []*resource.State, d clientTraits) *content {
	return &content{typeURL: s.typeURL, delta: d.delta, listed: resources, full: !d.delta && s.fullState()}
}

// encode returns the field "resources" of a response, as the two protocols have
// it: Any, or Resource. It is made once, by the first stream that sends it.
func (c *content) encode() []byte {
	c.once.Do(func() {
		size := 0
		each := func(visit func(r *resource.State)) {
			if !c.full {
				for _, r := range c.listed {
					visit(r)
				}
				return
			}
			for r := range c.after.List.All() {
				if r.Marker == resource.Present {
					visit(r)
				}
			}
		}
		each(func(r *resource.State) { size += wire.ResourceSize(r) })
		c.wire = make([]byte, 0, size)
		each(func(r *resource.State) { c.wire = wire.AppendResource(c.wire, r, c.delta) })
	})
	return c.wire
}

// count returns the number of resources in the response.
func (c *content) count() int {
	if c.full {
		return c.after.List.Len()
	}
	return len(c.listed)
}
