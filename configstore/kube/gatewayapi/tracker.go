// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// nodeKind is a kind of results. They are in the order in which they are computed: each reads
// inputs and results of earlier kinds.
type nodeKind uint8

const (
	nodeGateway           nodeKind = iota // the listeners of a Gateway and its ListenerSets, and their configs
	nodeRoute                             // a route: what it contributes to hosts, and its status
	nodePolicies                          // the DestinationRules of a Service or ServiceEntry
	nodeClassStatus                       // a GatewayClass
	nodeGatewayStatus                     // a Gateway
	nodeListenerSetStatus                 // a ListenerSet
	nodePolicyStatus                      // a BackendTLSPolicy
	nodeKinds
)

// node is one result.
type node struct {
	kind  nodeKind
	route Kind // of nodeRoute; of nodePolicies the kind of the target
	key   Key
}

func (n node) compare(m node) int {
	return cmp.Or(strings.Compare(string(n.route), string(m.route)), n.key.Compare(m.key))
}

// topicKind is a kind of things that can be read.
type topicKind uint8

const (
	aClass topicKind = iota
	aGateway
	aNamespace
	allNamespaces // every Namespace with its labels
	aService
	endpointsOf // the EndpointSlices of a Service
	aSecret
	aConfigMap
	aServiceEntry
	aHost     // the ServiceEntries of a host
	grantsOf  // the ReferenceGrants of a namespace
	aProvided // what a Gateway runs on

	// What of results is read by later ones.
	listenersOfGateway // what routes see of a Gateway's listeners
	listenersOfSet     // of a ListenerSet's
	usersOf            // the Gateways whose routes name a Service, or a ServiceEntry, of a key
)

// topic is one thing that can be read, whether it is there or not.
type topic struct {
	kind topicKind
	key  Key
}

// tracker knows which result has read what, and which have to be computed again. A result is
// a function of what it has read: so it is up to date as long as none of that is touched.
type tracker struct {
	readers map[topic]map[node]struct{}
	reads   map[node][]topic
	dirty   [nodeKinds]map[node]struct{}
}

func newTracker() tracker {
	t := tracker{readers: map[topic]map[node]struct{}{}, reads: map[node][]topic{}}
	for kind := range t.dirty {
		t.dirty[kind] = map[node]struct{}{}
	}
	return t
}

// mark has a result computed again.
func (t *tracker) mark(n node) { t.dirty[n.kind][n] = struct{}{} }

// touch says that a topic has changed.
func (t *tracker) touch(at topic) {
	for n := range t.readers[at] {
		t.mark(n)
	}
}

// read notes that a result depends on a topic.
func (t *tracker) read(n node, at topic) {
	readers := t.readers[at]
	if readers == nil {
		readers = map[node]struct{}{}
		t.readers[at] = readers
	}
	if _, known := readers[n]; !known {
		readers[n] = struct{}{}
		t.reads[n] = append(t.reads[n], at)
	}
}

// forget drops what a result has read, before it is computed again.
func (t *tracker) forget(n node) {
	for _, at := range t.reads[n] {
		delete(t.readers[at], n)
		if len(t.readers[at]) == 0 {
			delete(t.readers, at)
		}
	}
	delete(t.reads, n)
}

// take returns the results of a kind that have to be computed again, in a fixed order.
func (t *tracker) take(kind nodeKind) []node {
	nodes := slices.SortedFunc(maps.Keys(t.dirty[kind]), node.compare)
	empty(&t.dirty[kind])
	return nodes
}

// empty removes everything from a map. One that has been large is not kept: to go through it
// would cost as much as when it was full.
func empty[K comparable, V any](m *map[K]V) {
	if len(*m) > 64 {
		*m = map[K]V{}
	}
	clear(*m)
}

// index is a map of sets.
type index[K, V comparable] map[K]map[V]struct{}

func (x index[K, V]) add(k K, v V) {
	if x[k] == nil {
		x[k] = map[V]struct{}{}
	}
	x[k][v] = struct{}{}
}

func (x index[K, V]) remove(k K, v V) {
	delete(x[k], v)
	if len(x[k]) == 0 {
		delete(x, k)
	}
}

// counts is a map of numbers above zero.
type counts[K, V comparable] map[K]map[V]int

// add changes a number and reports whether it has become zero or was zero.
func (x counts[K, V]) add(k K, v V, by int) (turned bool) {
	if x[k] == nil {
		x[k] = map[V]int{}
	}
	before := x[k][v]
	x[k][v] = before + by
	if before+by == 0 {
		delete(x[k], v)
		if len(x[k]) == 0 {
			delete(x, k)
		}
	}
	return before == 0 || before+by == 0
}
