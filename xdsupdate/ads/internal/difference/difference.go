// SPDX-License-Identifier: Apache-2.0

// Package difference computes the contents of the responses that bring a client from one snapshot
// to another, for SotW and delta, Envoys and gRPC clients. State.Difference returns them. Clients
// with equal snapshots and traits share them.
package difference

import (
	"slices"
	"weak"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/index"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/reference"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/resource"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// MaxBytes is the size of the largest response, except for a single resource that is larger, where
// the protocol allows dividing it: gRPC accepts messages of up to 4 MiB by default.
const MaxBytes = 2 << 20

// Difference brings a client from one snapshot to another. It is computed once for all clients of a
// selection, and immutable.
type Difference struct {
	// Update is sent first; it is nil if no resource is new or changed. More means that another
	// difference follows after it.
	Update *Content
	More   bool
	// Removal is sent when the client uses the removed resources no more; it is nil if there are
	// none.
	Removal *Content
	// Rest is the client's snapshot after the last response.
	Rest *resource.Snapshot
}

// Kind is the type of the subscribed resources, and whether the subscription is a wildcard.
type Kind struct {
	TypeURL  string
	Wildcard bool
}

// FullState reports whether a SotW response has to list all subscribed resources, because the
// client takes the others for removed: clusters and listeners (xDS protocol, "Deleting resources"),
// and all types under a wildcard.
func (k Kind) FullState() bool {
	return k.Wildcard || k.TypeURL == envoy.ClusterType || k.TypeURL == envoy.ListenerType
}

// State is the subscribed names and the present resources, at one moment. It is immutable, so that
// differences are computed without a lock.
type State[H comparable] struct {
	Kind
	Topics   []*index.Topic[H]
	Snapshot *resource.Snapshot
}

// Difference returns the difference for a client whose snapshot is from. It decides for each name:
//
//	the client has   | present state | the response has
//	-----------------|---------------|-------------------------------------------
//	anything         | another state | the state
//	a state          | the same      | no entry
//	anything else    | the same      | the state
//	a state          | none          | by removalOf: its removal, an empty assignment,
//	                 |               | or no entry, and the client keeps the state
//	unknown          | none          | its removal; with SotW an empty assignment; see unresolved
//	no resource      | none          | no entry; if it is returning the removal, or
//	                 |               | an empty assignment; see untold
func (s State[H]) Difference(from *resource.Snapshot, d Traits) *Difference {
	var changed, fresh, emptied []*resource.State
	clusters := s.TypeURL == envoy.ClusterType && s.Wildcard
	var removed []string
	var edits []resource.Edit // turns s.Snapshot into the client's final snapshot
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
	if s.TypeURL == SecretType && !d.Delta && !d.GRPC && !s.Wildcard && !more {
		if untold := s.untold(from); len(untold) > 0 { // after all others
			edits, changed = append(edits, untold...), append(changed, unreadable(untold[0].Name))
		}
	}
	out := &Difference{Rest: s.Snapshot.With(edits), More: more}
	if d.Delta && d.Returning { // also of resources that have been removed before its first response
		removed = s.withMissing(removed, out.Rest, emptied)
	}
	if s.TypeURL == virtualHostType && d.Delta {
		removed, emptied = s.unresolved(from, removed)
	}
	if len(changed) > 0 {
		out.Update = s.NewContent(changed, out.Rest, d)
		out.Update.Fresh = reference.NewClusterNames(fresh, resource.NameOf)
		if more || len(removed)+len(emptied) > 0 {
			out.Update.After = from.WithAll(changed)
		}
		out.Update.Divide(from, d)
	}
	if len(removed)+len(emptied) > 0 {
		out.Removal = s.NewContent(emptied, out.Rest, d)
		out.Removal.Removed = removed
	}
	return out
}

const virtualHostType = "type.googleapis.com/envoy.config.route.v3.VirtualHost"

// unresolved divides the names of virtual hosts that do not exist. Those that the client does not have become resources
// without content: an Envoy holds back the request that it asks for until it gets a resource of the name (VHDS).
func (s State[H]) unresolved(from *resource.Snapshot, names []string) (removed []string, unresolved []*resource.State) {
	for _, name := range names {
		if from.Find(name).IsPresent() {
			removed = append(removed, name)
		} else {
			unresolved = append(unresolved, resource.NewMarker(s.TypeURL, name, resource.Absent))
		}
	}
	return removed, unresolved
}

// withMissing adds the names of subscribed resources that a client's final snapshot does not have, and
// that it does not get empty.
func (s State[H]) withMissing(removed []string, rest *resource.Snapshot, emptied []*resource.State) []string {
	for _, name := range Missing(rest, s.Topics) {
		if _, gets := slices.BinarySearchFunc(emptied, &resource.State{Name: name}, resource.CompareNames); !gets {
			removed = append(removed, name)
		}
	}
	slices.Sort(removed)
	return slices.Compact(removed)
}

// Missing returns the names of sorted topics that have no resource in a snapshot.
func Missing[H comparable](s *resource.Snapshot, topics []*index.Topic[H]) (out []string) {
	if len(topics) < s.List.Len()/16 {
		for _, t := range topics {
			if !s.Find(t.Name).IsPresent() {
				out = append(out, t.Name)
			}
		}
		return out
	}
	for r := range s.List.All() {
		for len(topics) > 0 && topics[0].Name < r.Name {
			out, topics = append(out, topics[0].Name), topics[1:]
		}
		if len(topics) > 0 && topics[0].Name == r.Name {
			if topics = topics[1:]; r.Marker != resource.Present {
				out = append(out, r.Name)
			}
		}
	}
	return append(out, index.Names(topics)...)
}

// Keeps reports whether a client keeps a resource that has been removed, or replaced by a
// tombstone.
func (s State[H]) Keeps(old, now *resource.State, d Traits) bool {
	return s.removalOf(old, now, d) == isKept
}

// removalAction is the consequence of a removal for a client that has the resource.
type removalAction int

const (
	isRemoved removalAction = iota
	isEmptied
	isKept
)

// removalOf decides the consequence of a removal for a client that has old. now is nil or, for an
// assignment, may be a tombstone.
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
	case d.GRPC && grpcKeeps(s.TypeURL, old.Name), !d.Delta && !s.FullState(), s.TypeURL == ExtensionType:
		return isKept
	default:
		return isRemoved
	}
}

// ExtensionType is the type URL of extensions (ECDS). Envoys of both protocols keep an extension until they unsubscribe
// from it: with its removal, a listener that still has it, or drains, would answer requests with 500.
const ExtensionType = "type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig"

// grpcKeeps reports whether gRPC clients keep a removed resource. They do not keep the listener of
// a server, because it decides who may call and would never be updated.
func grpcKeeps(typeURL, name string) bool {
	_, inbound, _ := xdsbuild.ParseInboundName(name)
	return !inbound && (typeURL == envoy.ClusterType || typeURL == envoy.ListenerType || typeURL == envoy.RouteType)
}

func emptyAssignment(name string) *resource.State {
	r := &resource.State{TypeURL: envoy.LoadAssignmentType, Name: name, Build: func() (proto.Message, error) {
		return &endpointv3.ClusterLoadAssignment{ClusterName: name}, nil
	}}
	r.Exists()
	return r
}

// NewContent returns the content of a response with some resources, after which the client has a snapshot.
func (k Kind) NewContent(resources []*resource.State, after *resource.Snapshot, d Traits) *Content {
	return &Content{TypeURL: k.TypeURL, delta: d.Delta, Listed: resources, Full: !d.Delta && k.FullState(), After: after}
}

// Traits are the properties of clients that make responses differ between equal snapshots.
type Traits struct {
	Delta bool
	// GRPC clients keep removed resources: see package ads.
	GRPC bool
	// Returning means that the client's resources are not known. With SotW it may have assignments
	// that were removed; with delta each name has to be answered.
	Returning bool
}

// Key finds a difference to the snapshot of a selection.
type Key struct {
	From *resource.Snapshot
	Traits
}

// Known are differences to one snapshot, by the snapshots of clients. The zero value is empty.
type Known struct {
	made map[Key]*Difference
	// fromNothing are the differences for clients without resources. They remain when all clients
	// are up to date, until the memory is needed, so that clients that connect one after the other
	// share the first response.
	fromNothing map[Traits]weak.Pointer[Difference]
}

// Get returns a difference that was found before, or nil.
func (k *Known) Get(key Key) *Difference {
	if found := k.made[key]; found != nil || key.From.List.Len() > 0 {
		return found
	}
	found := k.fromNothing[key.Traits].Value()
	if found != nil {
		k.Add(key, found)
	}
	return found
}

// Add keeps a difference for other clients.
func (k *Known) Add(key Key, made *Difference) {
	if k.made == nil {
		k.made = make(map[Key]*Difference)
	}
	k.made[key] = made
	if key.From.List.Len() == 0 {
		if k.fromNothing == nil {
			k.fromNothing = make(map[Traits]weak.Pointer[Difference])
		}
		k.fromNothing[key.Traits] = weak.Make(made)
	}
}

// Release releases the differences, except for clients without resources.
func (k *Known) Release() { *k = Known{fromNothing: k.fromNothing} }
