// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/difference"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/reference"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/resource"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// A gRPC client is not made to give up what has gone: a cluster that has gone is left to it
// without endpoints, so that calls fail at once. That must not be before the client goes by
// the routes that lead elsewhere, which it may hold back for others that it needs (grpc-go,
// grpc-js). So clusters that routes are about to leave stay as they are, with their
// assignments, until the client has given them up: it does so with the last call there.

// leaveWait is how long a client may take to give up a cluster after it has accepted the
// routes without it: calls have chosen the cluster, and not yet an endpoint.
const leaveWait = time.Second

// asksByName reports whether the client is a gRPC client, which asks for the clusters that
// its routes name, and something may wait.
func (c *connection) asksByName() bool {
	clusters := c.subscriptions[envoy.ClusterType]
	return c.cache.phaseTimeout > 0 && clusters != nil && clusters.selection != nil && !clusters.wildcard() && clusters.traits().GRPC
}

// leaves returns the clusters that routes of a gRPC client lead to, and will not when they
// are what a response has.
func (s *subscription) leaves(c *difference.Content) (left []uint64) {
	if s.typeURL != envoy.RouteType || !s.conn.asksByName() {
		return nil
	}
	for _, r := range c.Listed {
		left = s.sent.Find(r.Name).References().Clusters.Without(left, r.References().Clusters)
	}
	return left
}

// leaving returns the clusters that calls of a gRPC client may go to, and are not to any more.
func (c *connection) leaving() reference.Hashes {
	routes := c.subscriptions[envoy.RouteType]
	if routes == nil || routes.selection == nil || routes.selection.snapshot == nil || !c.asksByName() {
		return nil
	}
	out := reference.NewHashes(c.mayLeave(routes))
	if len(out) == 0 {
		return nil
	}
	for r := range routes.target().List.All() {
		named := r.References().Clusters
		out = slices.DeleteFunc(out, named.Has)
	}
	return out
}

// mayLeave returns leaving, with those that other routes lead to.
func (c *connection) mayLeave(routes *subscription) (out []uint64) {
	now := time.Now()
	for hash, until := range c.phases.draining {
		if until.After(now) {
			c.wakeAt(until)
			out = append(out, hash)
		}
	}
	for i := range routes.acks.Unanswered {
		o := &routes.acks.Unanswered[i]
		if c.cache.overdue(o, now) {
			return out
		}
		c.wakeAt(o.SentAt.Add(c.cache.phaseTimeout))
		out = append(out, o.Left...)
	}
	if d := routes.difference(); d != nil && d.Update != nil {
		out = append(out, routes.leaves(d.Update)...)
	}
	return out
}

// keepsLeft sends what is new of clusters or assignments, or gone, but for those that routes
// are about to leave. Not waits: there are none.
func (s *subscription) keepsLeft(c *difference.Content) (waits bool) {
	if s.typeURL != envoy.ClusterType && s.typeURL != envoy.LoadAssignmentType || len(c.Removed) > 0 {
		return false
	}
	leaving := s.conn.leaving()
	isKept := func(r *resource.State) bool {
		return leaving.Has(xxhash.Sum64String(r.Name)) && s.sent.Find(r.Name).IsPresent()
	}
	if !slices.ContainsFunc(c.Listed, isKept) {
		return false
	}
	rest := slices.DeleteFunc(slices.Clone(c.Listed), isKept)
	if len(rest) == 0 {
		return true
	}
	s.warm(&difference.Content{Listed: rest})
	edits := make([]resource.Edit, len(rest))
	for i, r := range rest {
		edits[i] = resource.Edit{Name: r.Name, Resource: s.target().Find(r.Name)}
	}
	s.sendSome(rest, s.sent.With(edits), 0)
	return true
}
