// SPDX-License-Identifier: Apache-2.0

package xdstest

import (
	"maps"
	"slices"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
)

const wildcard = "*"

// The types whose first request subscribes to everything if it is empty.
const (
	clusterType  = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	listenerType = "type.googleapis.com/envoy.config.listener.v3.Listener"
)

// subscription is the client's subscription of one type.
type subscription struct {
	typeURL   string
	delta     bool
	names     map[string]struct{} // with "*" for a subscription to everything
	legacy    bool                // subscribed to everything by an empty request
	resources map[string]Resource
	version   string // last accepted
	nonce     string // last received
}

func newSubscription(typeURL string, delta bool) *subscription {
	return &subscription{
		typeURL: typeURL, delta: delta, names: make(map[string]struct{}), resources: make(map[string]Resource),
	}
}

// request is a discovery request of either protocol.
type request struct {
	node                   *core.Node
	typeURL                string
	version, nonce         string
	names                  []string          // SotW
	subscribe, unsubscribe []string          // delta
	versions               map[string]string // delta
	refusal                error
}

// change updates the names and returns the request to send.
func (t *subscription) change(add, remove []string, fresh bool) request {
	if len(add)+len(remove) == 0 {
		if t.legacy = fresh && (t.typeURL == clusterType || t.typeURL == listenerType); !t.legacy {
			add = []string{wildcard}
		}
	}
	for _, name := range add {
		t.names[name] = struct{}{}
	}
	for _, name := range remove {
		if delete(t.names, name); name == wildcard {
			t.legacy = false
			continue
		}
		if !t.everything() {
			delete(t.resources, name)
		}
	}
	r := t.request()
	r.subscribe, r.unsubscribe = add, remove
	if t.delta {
		r.nonce = "" // the request is neither an ACK nor a NACK
	}
	return r
}

// again returns the first request on a new stream.
func (t *subscription) again() request {
	t.nonce = ""
	r := t.request()
	r.subscribe = r.names
	r.versions = make(map[string]string, len(t.resources))
	for name, res := range t.resources {
		r.versions[name] = res.Version
	}
	return r
}

// answer returns the ACK or NACK of a response.
func (t *subscription) answer(r Response, refusal error) request {
	t.nonce = r.Nonce
	out := t.request()
	out.refusal = refusal
	return out
}

func (t *subscription) request() request {
	return request{
		typeURL: t.typeURL, version: t.version, nonce: t.nonce, names: slices.Sorted(maps.Keys(t.names)),
	}
}

// everything reports whether the client is subscribed to all resources of the type.
func (t *subscription) everything() bool {
	_, all := t.names[wildcard]
	return all || t.legacy
}

// apply updates the client's state with a response. A SotW response of clusters or listeners, and
// of any type with a wildcard subscription, is complete; for other types it concerns only the
// resources in it (xDS protocol, "Deleting resources").
func (t *subscription) apply(r Response) {
	t.version = r.Version
	if !t.delta && (t.everything() || t.typeURL == clusterType || t.typeURL == listenerType) {
		clear(t.resources)
	}
	for _, res := range r.Resources {
		// Like real clients, ignore resources that were unsubscribed meanwhile.
		if _, named := t.names[res.Name]; named || t.everything() {
			t.resources[res.Name] = res
		}
	}
	for _, name := range r.Removed {
		delete(t.resources, name)
	}
}
