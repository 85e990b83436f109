// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"sync"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/ipaddr"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/difference"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/failure"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/index"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/resource"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/sequence"
)

// The cache's mutex guards the fields of the four types in this file, and the values in them, except for the fields
// that are set once: cache, stream and conn. TestGuardedFields counts them.

// state is the state of all streams: the layers of the providers, the selections, the index of the
// subscribed names and the connections.
type state struct {
	// layers are the layers of the providers, or nil before the first state was published. Clients get no
	// response before, because a response from an empty state would remove all resources of a proxy that
	// reconnects.
	layers layers
	// epoch counts the pushes; recent are the objects that have changed lately, each with its last push.
	epoch  uint64
	recent map[configstore.ConfigKey]uint64
	// conns are the connections of identified clients; addresses finds those of a proxy.
	conns     map[*connection]struct{}
	addresses map[address][]*connection
	// selections are all selections, by the namespaces of their views; index finds the selections with a name.
	selections map[string]map[selectionKey][]*selection
	index      index.Index[*selection]
	// leaving are the selections that are about to leave the index.
	leaving []*selection
	// unprepared are the selections that wait for the first push, or whose first snapshot could not
	// be built; the next push prepares them.
	unprepared []*selection
	recalled   []recalled
	// progress is closed when a proxy answers or leaves; nil if no caller waits.
	progress chan struct{}
}

// selection is the shared state of equal subscriptions: of one type, of proxies of one view, to the
// same names or to everything. It has a snapshot of the present resources, and the subscriptions; a
// subscription has the snapshot of its client. So a change costs only the selections that have the
// name, the names of a thousand Envoys are kept once, and Envoys share responses. A client that is
// up to date has the same snapshot as its selection, so that its names cost nothing.
//
// A selection has a snapshot when the first push is done, and it is attached and prepared. Before
// that its clients get no response.
type selection struct {
	selectionKey
	// topics are the subscribed names, sorted.
	topics      []*topic
	subscribers []*subscription
	// held counts the selections that are being attached and share topics with it, including itself. It stays in
	// the index while it has subscribers, or is held.
	held int
	edition
	// preparing are the layers of the first snapshot while it is being built, otherwise nil.
	preparing layers
	// dirty are the names whose resources may differ from the snapshot. A name may occur twice.
	dirty []string
	// failing are the resources that have failures, by name.
	failing failing
}

// edition is a snapshot with its derived state: a new snapshot replaces all of it.
type edition struct {
	// snapshot is nil until the selection was prepared.
	snapshot *resource.Snapshot
	// since is when the last push was requested that changed the snapshot, or zero.
	since time.Time
	// differences bring clients up to date with the snapshot. current counts the clients that are
	// up to date: when all are, the differences are released.
	differences difference.Known
	current     int
	// announcements are the announcements of its route configurations.
	announcements map[announcementKey]*sequence.Announcement
}

// connection is one stream of one proxy: its state, and its subscriptions. It carries out the plans
// of package sequence.
//
// Its queue is bounded by the responses to one request and one push of each type, because the
// stream takes no request while the queue is not empty, and sending a response does not allow
// another one.
type connection struct {
	cache  *cache
	stream *stream

	sequence.Client
	identity
	// asking counts the callers that want the proxy identified. The first of them does it, and calls Options.Proxy
	// again if there are more, so that the identity is one that was returned after the last call of ProxyUpdate.
	asking int
	closed bool
	// draining means that a goroutine sends, or is about to, and will check the queue again.
	draining bool
	alarm    alarm
}

// identity is the identity of a client: nil and zero before the first request.
type identity struct {
	node  *core.Node
	proxy *registry.Proxy
	view  view
}

// alarm flushes a connection at a time, when it is time for another plan or attempt. The zero value is not set.
type alarm struct {
	timer *time.Timer
	at    time.Time
}

// subscription is one type of one stream: its state, its selection, and the rejected resources.
//
// Responses are not stored: each is the difference between the client's snapshot and that of the
// selection. So a slow client costs nothing, however often resources change meanwhile. After a
// response, the next one of the type waits for a request, so that a client has at most one more
// response than requests; exceptions are new clusters (see package sequence) and responses in
// parts.
type subscription struct {
	conn *connection

	sequence.Type
	selection *selection // nil before the first request was handled, and at the end
	// legacy means that the first request had no names, which makes the subscription a wildcard until there are
	// some.
	legacy bool
	// ahead has a difference that was found without the lock, for the next response. It is nil otherwise.
	ahead      *difference.Known
	rejections *rejections // nil if there are none
}

// cache has the state of all streams. Code that encodes or sends does not hold its mutex, and
// neither do calls of the program's code, except for the methods of Provided and the functions of
// Changes.
type cache struct {
	failures *failure.List
	// partSize and largeSize are the values of the constants with these names.
	partSize, largeSize int

	mu sync.Mutex
	state
}

// address is one address of a proxy.
type address struct {
	cluster registry.ClusterID
	ip      string
}

func newCache() *cache {
	return &cache{
		failures:  &failure.List{},
		partSize:  partSize.Get(),
		largeSize: largeSize.Get(),

		state: state{
			conns:      make(map[*connection]struct{}),
			addresses:  make(map[address][]*connection),
			selections: make(map[string]map[selectionKey][]*selection),
			recent:     make(map[configstore.ConfigKey]uint64),
		},
	}
}

// locked calls f with the lock held.
func (c *cache) locked(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
}

// The methods below are called with mu held, unless they say otherwise.

// list and unlist maintain addresses.
func (c *cache) list(conn *connection) {
	for _, ip := range conn.proxy.IPAddresses {
		key := address{conn.proxy.ClusterID, ipaddr.Canonical(ip)}
		c.addresses[key] = append(c.addresses[key], conn)
	}
}

func (c *cache) unlist(conn *connection) {
	if conn.proxy == nil {
		return
	}
	for _, ip := range conn.proxy.IPAddresses {
		key := address{conn.proxy.ClusterID, ipaddr.Canonical(ip)}
		if c.addresses[key] = index.Removed(c.addresses[key], conn); len(c.addresses[key]) == 0 {
			delete(c.addresses, key)
		}
	}
}

// resolver returns the resolver for selections of a view, with the present layers.
func (c *cache) resolver(v view) resolver {
	return resolver{view: v.Value(), layers: c.layers, failed: c.failures}
}

// awaitProgress returns a channel that progressed closes.
func (c *cache) awaitProgress() <-chan struct{} {
	if c.progress == nil {
		c.progress = make(chan struct{})
	}
	return c.progress
}

// progressed wakes the callers that wait for proxies.
func (c *cache) progressed() {
	if c.progress != nil {
		close(c.progress)
		c.progress = nil
	}
}
