// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/pilotkit/pilotkit/internal/limit"
)

// nodeKind is a kind of results. The kinds are in the order of computation: each reads inputs and
// results of earlier kinds.
type nodeKind uint8

const (
	nodeGateway           nodeKind = iota // the listeners of a Gateway and its ListenerSets, and their configs
	nodeRoute                             // the contributions to hosts, and the status of a route
	nodePolicies                          // the DestinationRules of a Service or ServiceEntry
	nodeClassStatus                       // a GatewayClass
	nodeGatewayStatus                     // a Gateway
	nodeListenerSetStatus                 // a ListenerSet
	nodePolicyStatus                      // a BackendTLSPolicy
	nodeKinds
)

// node identifies one result.
type node struct {
	kind  nodeKind
	route Kind // for nodeRoute, and for nodePolicies the kind of the target
	key   Key
}

// String names the object of the result.
func (n node) String() string {
	kind := [nodeKinds]Kind{
		nodeGateway: KindGateway, nodeRoute: n.route, nodePolicies: n.route, nodeClassStatus: KindGatewayClass,
		nodeGatewayStatus: KindGateway, nodeListenerSetStatus: KindListenerSet, nodePolicyStatus: KindBackendTLSPolicy,
	}[n.kind]
	return string(kind) + " " + n.key.String()
}

func (n node) compare(m node) int {
	return cmp.Or(strings.Compare(string(n.route), string(m.route)), n.key.Compare(m.key))
}

// topicKind is a kind of inputs.
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
	aProvided // the infrastructure of a Gateway

	// Results that later results read.
	listenersOfGateway // the views of a Gateway's listeners
	listenersOfSet     // the views of a ListenerSet's listeners
	usersOf            // the Gateways whose routes reference a Service, or a ServiceEntry, of a key
)

// topic is one input, which may be absent.
type topic struct {
	kind topicKind
	key  Key
}

// tracker records which result has read which topics, and which results have to be recomputed. A
// result is a function of the topics that it has read, so it is up to date until one of them is
// touched.
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

// mark schedules the recomputation of a result.
func (t *tracker) mark(n node) { t.dirty[n.kind][n] = struct{}{} }

// touch records that a topic has changed.
func (t *tracker) touch(at topic) {
	for n := range t.readers[at] {
		t.mark(n)
	}
}

// read records that a result depends on a topic.
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

// forget drops the dependencies of a result before it is recomputed.
func (t *tracker) forget(n node) {
	for _, at := range t.reads[n] {
		delete(t.readers[at], n)
		if len(t.readers[at]) == 0 {
			delete(t.readers, at)
		}
	}
	delete(t.reads, n)
}

// take returns the results of a kind that have to be recomputed, in a fixed order.
func (t *tracker) take(kind nodeKind) []node {
	nodes := slices.SortedFunc(maps.Keys(t.dirty[kind]), node.compare)
	empty(&t.dirty[kind])
	return nodes
}

// maxEmptied is the maximum size of a map that is used again.
const maxEmptied limit.Size = 64

// empty removes everything from a map. It replaces a map that has been large, because iterating
// over it would remain as expensive as when it was full.
func empty[K comparable, V any](m *map[K]V) {
	if len(*m) > maxEmptied.Get() {
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

// counts is a map of positive numbers.
type counts[K, V comparable] map[K]map[V]int

// add changes a number and reports whether it was zero or has become zero.
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
