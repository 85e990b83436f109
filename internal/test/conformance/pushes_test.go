// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// indexState is the content of an endpoint index: the endpoints, normalised, by
// service and shard. Shards without endpoints are not in it.
type indexState map[key]map[string][]endpoint

// stateOf reads an observed index. normalise makes sets of endpoint lists.
func stateOf(entries []indexEntry, normalise func([]endpoint) []endpoint) indexState {
	out := indexState{}
	for _, e := range entries {
		for _, s := range e.Shards {
			out.set(e.key(), s.Shard, normalise(s.Endpoints))
		}
	}
	return out
}

func (s indexState) set(k key, shard string, endpoints []endpoint) {
	if len(endpoints) == 0 {
		delete(s[k], shard)
		return
	}
	if s[k] == nil {
		s[k] = map[string][]endpoint{}
	}
	s[k][shard] = endpoints
}

func (s indexState) clone() indexState {
	out := indexState{}
	for k, shards := range s {
		out[k] = maps.Clone(shards)
	}
	return out
}

// The values of call.PushType, weakest first.
const (
	noPush          = "NoPush"
	incrementalPush = "IncrementalPush"
	fullPush        = "FullPush"
)

func strongerPush(a, b string) string {
	rank := map[string]int{"": -1, noPush: 0, incrementalPush: 1, fullPush: 2}
	if rank[b] > rank[a] {
		return b
	}
	return a
}

// pushes is the effect of a step's calls on the index.
type pushes struct {
	// strongest has, for each service whose endpoints changed, the strongest push.
	strongest map[key]string
	// redundant are the EDSUpdates without a change, other than those after a SvcUpdate delete.
	redundant []call
	// after is the index after the calls.
	after indexState
}

// pushesOf plays calls on an index. Calls that appeared in some runs only are left
// out unless sometimes is set.
func pushesOf(before indexState, calls []call, normalise func([]endpoint) []endpoint, sometimes bool) pushes {
	p := pushes{strongest: map[key]string{}, after: before.clone()}
	deleted := map[key]bool{}
	for _, c := range calls {
		k := key{c.Hostname, c.Namespace}
		switch {
		case c.Sometimes && !sometimes:
		case c.Call == callSvcUpdate && c.Event == eventDelete:
			deleted[k] = true
			p.after.set(k, c.Shard, nil)
		case c.Call == callRemoveShard:
			for k := range p.after {
				p.after.set(k, c.Shard, nil)
			}
		case c.Call == callEDSUpdate || c.Call == callEDSCacheUpdate:
			endpoints := normalise(c.Endpoints)
			if sameEndpoints(p.after[k][c.Shard], endpoints) {
				if !deleted[k] {
					p.redundant = append(p.redundant, c)
				}
				continue
			}
			p.after.set(k, c.Shard, endpoints)
			p.strongest[k] = strongerPush(p.strongest[k], c.PushType)
		}
	}
	return p
}

// sameEndpoints compares two normalised lists as sets.
func sameEndpoints(a, b []endpoint) bool {
	if len(a) != len(b) {
		return false
	}
	count := map[string]int{}
	for _, e := range a {
		count[e.text()]++
	}
	for _, e := range b {
		if t := e.text(); count[t] > 0 {
			count[t]--
			continue
		}
		return false
	}
	return true
}

// text is a canonical form of an endpoint, without the fields that cannot be encoded.
func (e endpoint) text() string {
	data, err := json.Marshal(e)
	if err != nil {
		return fmt.Sprintf("%+v", e)
	}
	return string(data)
}

// configs returns the union of configsUpdated of the ConfigUpdates that have a
// reason, or of all for "".
func configs(calls []call, reason string, sometimes bool) map[string]bool {
	out := map[string]bool{}
	for _, c := range calls {
		if c.Call != callConfigUpdate || c.Sometimes && !sometimes || reason != "" && !slices.Contains(c.Reasons, reason) {
			continue
		}
		for _, k := range c.ConfigsUpdated {
			out[k] = true
		}
	}
	return out
}

// The values of call.Reasons that are compared.
const (
	reasonService  = "service"
	reasonEndpoint = "endpoint"
)

// serviceConfig is how a service is named in configsUpdated.
func serviceConfig(k key) string { return "ServiceEntry/" + k.String() }

// normaliseRecorded makes a set of a recorded endpoint list.
func (x *expectation) normaliseRecorded(endpoints []endpoint) []endpoint {
	out := make([]endpoint, 0, len(endpoints))
	for _, e := range endpoints {
		if !slices.ContainsFunc(x.verbatim, func(l map[string]string) bool { return maps.Equal(l, e.Labels) }) {
			e = row11EffectiveNetwork(e)
		}
		out = append(out, normaliseEndpoint(e))
	}
	return row5EachEndpointOnce(out)
}

// normaliseReplayed brings a replayed list into the same form. It keeps
// duplicates: there must be none.
func normaliseReplayed(endpoints []endpoint) []endpoint {
	out := make([]endpoint, 0, len(endpoints))
	for _, e := range endpoints {
		out = append(out, normaliseEndpoint(e))
	}
	return out
}

func normaliseEndpoint(e endpoint) endpoint {
	e = incidentalEmptyAddress(e)
	if len(e.Addresses) == 0 {
		e.Addresses = nil
	}
	if len(e.Labels) == 0 {
		e.Labels = nil
	}
	return e
}
