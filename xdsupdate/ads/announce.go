// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/reference"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/resource"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// A gRPC client asks for a cluster when a route names it, so that the server cannot send
// the cluster before. grpc-go uses the routes before its balancers know their clusters, and
// fails the calls in between (grpc-go 1.84: ClientConn.updateResolverStateAndUnlock). So
// routes that lead to clusters which the client's routes did not name are announced: the
// client is first sent the routes that it has, and behind them routes that match no call and
// name the clusters. It asks for those and their assignments, and when it has accepted all
// of them it is sent the routes.

// announcement is a route configuration with routes that match no call. It is guarded by
// the cache's mutex.
type announcement struct {
	// base is what the client had before, of what base is followed by; sent has the
	// routes of base and names the clusters, too.
	base, of, sent *resource.State
	clusters       []string
	// accepted is when the client was seen to have accepted it; zero: it has not.
	accepted time.Time
}

// announcementKey finds an announcement of one state of a route configuration to clients
// that have another one.
type announcementKey struct{ base, of *resource.State }

// announces sends what need not wait of new routes, and announces the rest. Not waits:
// nothing has to wait.
func (s *subscription) announces(update *content) (waits bool) {
	if s.typeURL != envoy.RouteType || s.wildcard() || !s.conn.asksByName() {
		return false
	}
	timeout := s.conn.cache.phaseTimeout
	if !s.waiting.IsZero() && !s.waiting.Add(timeout).After(time.Now()) {
		s.announced = nil
		s.conn.reportLate()
		return false
	}
	var list []*resource.State
	for _, r := range update.listed {
		a := s.announcement(r)
		switch {
		case a == nil || s.isReady(a):
			delete(s.announced, r.Name)
			list = append(list, r)
			continue
		case a.sent != s.sent.Find(r.Name):
			list = append(list, a.sent)
		}
		waits = true
		if s.announced == nil {
			s.announced = make(map[string]*announcement)
		}
		s.announced[r.Name] = a
	}
	if !waits {
		s.announced = nil
		return false
	}
	if len(list) > 0 {
		s.sendSome(list, s.sent.WithAll(list), 0)
	}
	if s.waiting.IsZero() {
		s.waiting = time.Now()
	}
	s.conn.wakeAt(s.waiting.Add(timeout))
	return true
}

// reportLate has the responses reported that the client has not answered when they have
// been overdue, though nothing waits for them any more.
func (c *connection) reportLate() {
	for _, s := range c.order {
		if len(s.acks.outstanding) > 0 && !s.acks.outstanding[0].overdue {
			c.wakeAt(s.acks.outstanding[0].sentAt.Add(c.cache.phaseTimeout))
		}
	}
}

// announcement returns the announcement of a new state of a route configuration; nil: it
// needs none.
func (s *subscription) announcement(r *resource.State) *announcement {
	sent := s.sent.Find(r.Name)
	base, before := sent, s.announced[r.Name]
	if before != nil && before.sent == sent {
		base = before.base
		if before.of.Same(r) {
			return before
		}
	}
	if !base.IsPresent() || !r.References().Clusters.Exceed(base.References().Clusters) {
		return nil
	}
	a := s.selection.announcement(announcementKey{base, r})
	if base != sent && a != nil && a.sent.Same(sent) { // other routes to the same clusters
		a.sent, a.accepted = sent, before.accepted
	}
	return a
}

// announcement returns an announcement, which is made once for all clients of the selection;
// nil: it would be too large.
func (s *selection) announcement(key announcementKey) *announcement {
	a, found := s.announcements[key]
	if !found {
		if s.announcements == nil {
			s.announcements = make(map[announcementKey]announcement)
		}
		a = newAnnouncement(key.base, key.of)
		s.announcements[key] = a
	}
	if a.sent == nil {
		return nil
	}
	return &a
}

// newAnnouncement returns an announcement; its sent is nil if it would be too large.
func newAnnouncement(base, of *resource.State) announcement {
	a := announcement{base: base, of: of, clusters: clustersOf(of, base.References().Clusters)}
	var routes []byte
	for _, name := range a.clusters {
		routes = append(routes, announcingRoute(name)...)
	}
	if value := withRoutes(base.Value, routes); value != nil {
		a.sent = &resource.State{TypeURL: base.TypeURL, Name: base.Name, Bytes: func() []byte { return value }}
		a.sent.Exists()
	}
	return a
}

// clustersOf returns the clusters that a route configuration names, but for some.
func clustersOf(r *resource.State, but reference.Hashes) (out []string) {
	reference.EachCluster(r.TypeURL, r.Value, func(name []byte) {
		if !but.Has(xxhash.Sum64(name)) {
			out = append(out, string(name))
		}
	})
	slices.Sort(out)
	return slices.Compact(out)
}

// The numbers of fields of a RouteConfiguration and of a VirtualHost.
const (
	virtualHostsField = 2
	routesField       = 3
)

// announcingRoute returns a route that matches no call, encoded as a field of a virtual
// host. Clients agree on what is sent: all of them take a header that has to be there, and
// not to be there.
func announcingRoute(cluster string) []byte {
	present := func(inverted bool) *routev3.HeaderMatcher {
		return &routev3.HeaderMatcher{
			Name: "x-announced", InvertMatch: inverted,
			HeaderMatchSpecifier: &routev3.HeaderMatcher_PresentMatch{PresentMatch: true},
		}
	}
	value, _ := resource.Marshal(&routev3.Route{
		Match: &routev3.RouteMatch{
			PathSpecifier: &routev3.RouteMatch_Prefix{},
			Headers:       []*routev3.HeaderMatcher{present(false), present(true)},
		},
		Action: &routev3.Route_Route{Route: &routev3.RouteAction{ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: cluster}}},
	})
	return protowire.AppendBytes(protowire.AppendTag(nil, routesField, protowire.BytesType), value)
}

// withRoutes returns an encoded route configuration with more routes behind those of each of
// its virtual hosts: clients use one of them. Nil: it would be too large.
func withRoutes(configuration, routes []byte) (out []byte) {
	out = make([]byte, 0, len(configuration)+len(routes)+16)
	for len(configuration) > 0 {
		number, kind, n := protowire.ConsumeTag(configuration)
		if n < 0 {
			return nil
		}
		size := protowire.ConsumeFieldValue(number, kind, configuration[n:])
		if size < 0 {
			return nil
		}
		if number != virtualHostsField {
			out = append(out, configuration[:n+size]...)
		} else {
			host, _ := protowire.ConsumeBytes(configuration[n:])
			out = protowire.AppendVarint(append(out, configuration[:n]...), uint64(len(host)+len(routes)))
			out = append(append(out, host...), routes...)
		}
		if len(out) > responseBytes {
			return nil
		}
		configuration = configuration[n+size:]
	}
	return out
}

// isReady reports whether the client has accepted an announcement and the clusters that it
// names, with their assignments.
func (s *subscription) isReady(a *announcement) bool {
	if s.sent.Find(a.sent.Name) != a.sent || s.acks.awaits(a.sent.Name) {
		return false
	}
	now := time.Now()
	if a.accepted.IsZero() {
		a.accepted = now
	}
	asks := a.accepted.Add(resumeWait).After(now)
	if asks {
		s.conn.wakeAt(a.accepted.Add(resumeWait))
	}
	clusters, assignments := s.conn.subscriptions[envoy.ClusterType], s.conn.subscriptions[envoy.LoadAssignmentType]
	return !slices.ContainsFunc(a.clusters, func(name string) bool {
		cluster, coming := clusters.named(name, asks)
		if assignment := assignmentOf(cluster); assignment != "" && !coming {
			_, coming = assignments.named(assignment, asks)
		}
		return coming
	})
}

// named returns what the client has under a name, and whether it is to have something else
// that it has not accepted yet. asks: the client may still ask for it.
func (s *subscription) named(name string, asks bool) (r *resource.State, coming bool) {
	if s == nil || s.selection == nil || !s.selection.names(name) {
		return nil, asks
	}
	if s.selection.snapshot == nil || slices.Contains(s.selection.dirty, name) {
		return nil, true
	}
	r = s.sent.Find(name)
	return r, s.acks.awaits(name) || s.target().Find(name).IsPresent() && !r.IsPresent()
}

// assignmentOf returns the name of the assignment that a client asks for when it has a
// cluster; "": it asks for none.
func assignmentOf(cluster *resource.State) (name string) {
	const edsField, serviceNameField = 3, 2
	if !cluster.IsPresent() {
		return ""
	}
	// This server has encoded it.
	_ = eachText(cluster.Value, func(number protowire.Number, eds []byte) {
		if number != edsField {
			return
		}
		name = cluster.Name
		_ = eachText(eds, func(number protowire.Number, text []byte) {
			if number == serviceNameField && len(text) > 0 {
				name = string(text)
			}
		})
	})
	return name
}
