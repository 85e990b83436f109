// SPDX-License-Identifier: Apache-2.0

// Package difference finds what brings a client from the resources that it has to those that
// there are, in the ways of SotW and delta, Envoys and gRPC clients: the contents of responses,
// which all clients share that have the same and are to have the same.
package difference

import (
	"slices"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/index"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/reference"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/resource"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// MaxBytes is how much a response holds at most, but for one resource that is
// larger, where the protocol allows to divide it: gRPC takes messages of up to 4 MiB by
// default.
const MaxBytes = 2 << 20

// Difference is what brings a client from one snapshot to another. It is made
// once for all clients of a selection, and immutable.
type Difference struct {
	// Update is sent first; nil: nothing is new. More: there is more to send after it, which is
	// another difference.
	Update *Content
	More   bool
	// Removal is sent when nothing may use any more what has gone; nil: nothing
	// has gone that the client is sent.
	Removal *Content
	// Rest is what the client has when nothing, or nothing more, is to be sent.
	Rest *resource.Snapshot
}

// FullState reports whether a SotW response has to list everything that the
// client is subscribed to, because what it does not list is taken for removed:
// clusters and listeners (xDS protocol, "Deleting resources"), and whatever is
// not subscribed by name.
func FullState(typeURL string, wildcard bool) bool {
	return wildcard || typeURL == envoy.ClusterType || typeURL == envoy.ListenerType
}

// Kind is the type of the resources that a client is subscribed to, and whether to all of them.
type Kind struct {
	TypeURL  string
	Wildcard bool
}

// FullState is that function for the kind.
func (k Kind) FullState() bool { return FullState(k.TypeURL, k.Wildcard) }

// State is what clients are subscribed to, and what there is of it, at one moment. It is
// immutable, so that differences are found without a lock.
type State[H comparable] struct {
	Kind
	Topics   []*index.Topic[H]
	Snapshot *resource.Snapshot
}

// Difference returns what a client that has from is to be sent. It decides what becomes of each
// name:
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
func (s State[H]) Difference(from *resource.Snapshot, d Traits) *Difference {
	var changed, fresh, emptied []*resource.State
	clusters := s.TypeURL == envoy.ClusterType && s.Wildcard
	var removed []string
	var edits []resource.Edit // of s.Snapshot, to what the client has in the end
	size, more, divisible, most := 0, false, d.Delta || !s.FullState(), s.AtOnce(d)
	resource.Compare(from, s.Snapshot, func(old, now *resource.State) {
		switch {
		case now != nil && now.Marker == resource.Present:
			if old != nil && now.Same(old) {
				return
			}
			if more = more || divisible && size > 0 && (size+len(now.Value) > MaxBytes || len(changed) == most); !more {
				changed = append(changed, now)
				size += len(now.Value)
				if clusters && old == nil {
					fresh = append(fresh, now)
				}
			}
		case old == nil:
			if d.Returning && !d.Delta {
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
	if d.Delta && d.Returning {
		removed = append(removed, s.absent(edits, emptied)...)
		slices.Sort(removed)
		removed = slices.Compact(removed)
	}
	if s.tellsAbsent(d) && !more {
		s.tell(from, &edits, &changed)
	}
	out := &Difference{Rest: s.Snapshot.With(edits), More: more}
	if len(changed) > 0 {
		out.Update = s.NewContent(changed, d)
		out.Update.Fresh = reference.NewClusterNames(len(fresh), resource.Names(fresh))
		if out.Update.After = out.Rest; more || len(removed)+len(emptied) > 0 {
			out.Update.After = from.WithAll(changed)
		}
		out.Update.Divide(from, d)
	}
	if len(removed)+len(emptied) > 0 {
		out.Removal = s.NewContent(emptied, d)
		out.Removal.Removed, out.Removal.After = removed, out.Rest
	}
	return out
}

// absent returns the names that are subscribed and of which there is nothing, but
// for those of resources that the client keeps, or is sent an empty state of: they
// have gone since its first response.
func (s State[H]) absent(kept []resource.Edit, emptied []*resource.State) []string {
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
func (s State[H]) missing() []string {
	var out []string
	topics := s.Topics
	for r := range s.Snapshot.List.All() {
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

// Keeps reports whether a client keeps a resource that it has, though there is none or a
// tombstone.
func (s State[H]) Keeps(old, now *resource.State, d Traits) bool {
	return s.removalOf(old, now, d) == isKept
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
func (s State[H]) removalOf(old, now *resource.State, d Traits) removalAction {
	assignment := s.TypeURL == envoy.LoadAssignmentType
	switch {
	case old.Marker == resource.Unknown && assignment && !d.Delta:
		return isEmptied
	case old.Marker == resource.Unknown:
		return isRemoved
	case old.Marker == resource.Absent:
		return isKept
	case assignment && !s.Wildcard && (d.GRPC || !d.Delta):
		if now == nil {
			return isKept
		}
		return isEmptied
	case s.Wildcard:
		return isRemoved
	case d.GRPC && grpcKeeps(s.TypeURL, old.Name), !d.Delta && !s.FullState():
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

// NewContent returns the content of a response with some resources.
func (k Kind) NewContent(resources []*resource.State, d Traits) *Content {
	return &Content{TypeURL: k.TypeURL, delta: d.Delta, Listed: resources, Full: !d.Delta && k.FullState()}
}
