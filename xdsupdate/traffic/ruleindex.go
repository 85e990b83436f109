// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"iter"
	"slices"

	"github.com/pilotkit/pilotkit/internal/pmap"
	"github.com/pilotkit/pilotkit/registry"
)

// ruleIndex indexes DestinationRules by namespace and host. It is immutable. A change copies only
// the entries that it concerns. The zero value is empty.
type ruleIndex struct {
	hosts pmap.Map[ruleKey, *hostRules]
	// wildcards counts the wildcard hosts by namespace. Without any, a lookup is one step.
	wildcards pmap.Map[string, int]
	// namespaces are the namespaces with DestinationRules for a host.
	namespaces pmap.Map[registry.Hostname, []string]
}

type ruleKey struct {
	namespace string
	host      registry.Hostname
}

// hostRules are the DestinationRules for a host in a namespace. It is immutable.
type hostRules struct {
	objects []*destinationRule // sorted by compareSelective
	// merged are the merged rules of users, and policies are the rules generated from
	// BackendTLSPolicies.
	merged   []*rule
	policies []*destinationRule
}

func newHostRules(objects []*destinationRule) *hostRules {
	h := &hostRules{objects: objects}
	var own []*destinationRule
	for _, r := range objects {
		if r.ofPolicies() {
			h.policies = append(h.policies, r)
		} else {
			own = append(own, r)
		}
	}
	h.merged = newRules(own)
	return h
}

// newRuleIndex returns the index of unsorted DestinationRules.
func newRuleIndex(rules []*destinationRule) ruleIndex {
	var keys []ruleKey
	lists := make(map[ruleKey][]*destinationRule)
	for _, r := range rules {
		key := ruleKey{r.namespace, r.host}
		if lists[key] == nil {
			keys = append(keys, key)
		}
		lists[key] = append(lists[key], r)
	}
	var x ruleIndex
	for _, key := range keys {
		list := lists[key]
		slices.SortFunc(list, compareSelective)
		x = x.change(list[0], func([]*destinationRule) []*destinationRule { return list })
	}
	return x
}

// with returns the index with one DestinationRule replaced by another. Both may be nil.
func (x ruleIndex) with(before, after *destinationRule) ruleIndex {
	if before != nil {
		x = x.change(before, func(list []*destinationRule) []*destinationRule {
			return slices.DeleteFunc(list, func(r *destinationRule) bool { return r.objectName == before.objectName })
		})
	}
	if after != nil {
		x = x.change(after, func(list []*destinationRule) []*destinationRule {
			i, _ := slices.BinarySearchFunc(list, after, compareSelective)
			return slices.Insert(list, i, after)
		})
	}
	return x
}

// change edits the list of DestinationRules with the same host and namespace as r.
func (x ruleIndex) change(r *destinationRule, edit func([]*destinationRule) []*destinationRule) ruleIndex {
	key := ruleKey{r.namespace, r.host}
	old, had := x.hosts.Get(key)
	var list []*destinationRule
	if had {
		list = slices.Clone(old.objects)
	}
	list = edit(list)
	has := len(list) > 0
	if has {
		x.hosts = x.hosts.Set(key, newHostRules(list))
	} else {
		x.hosts = x.hosts.Delete(key)
	}
	if had != has {
		x.namespaces = x.namespacesWith(key, has)
	}
	if r.host.IsWildcard() && had != has {
		n, _ := x.wildcards.Get(r.namespace)
		if has {
			n++
		} else {
			n--
		}
		x.wildcards = x.wildcards.Set(r.namespace, n)
	}
	return x
}

// namespacesWith returns the namespaces of hosts with one namespace added or removed.
func (x ruleIndex) namespacesWith(key ruleKey, has bool) pmap.Map[registry.Hostname, []string] {
	old, _ := x.namespaces.Get(key.host)
	list := slices.DeleteFunc(slices.Clone(old), func(ns string) bool { return ns == key.namespace })
	if has {
		list = append(list, key.namespace)
	}
	if len(list) == 0 {
		return x.namespaces.Delete(key.host)
	}
	return x.namespaces.Set(key.host, list)
}

// about yields the DestinationRules of all namespaces that cover a host name.
func (x ruleIndex) about(name registry.Hostname) iter.Seq[*destinationRule] {
	return func(yield func(*destinationRule) bool) {
		for h := range x.hostsAbout(name) {
			for _, r := range h.objects {
				if !yield(r) {
					return
				}
			}
		}
	}
}

// hostsAbout yields the result of about, grouped by host and namespace.
func (x ruleIndex) hostsAbout(name registry.Hostname) iter.Seq[*hostRules] {
	return func(yield func(*hostRules) bool) {
		at := func(host registry.Hostname) bool {
			namespaces, _ := x.namespaces.Get(host)
			for _, ns := range namespaces {
				if h, _ := x.hosts.Get(ruleKey{ns, host}); !yield(h) {
					return false
				}
			}
			return true
		}
		if !at(name) {
			return
		}
		for wildcard := range wildcardsOf(name) {
			if wildcard != name && !at(wildcard) {
				return
			}
		}
	}
}

// find returns the rules of users in a namespace for the most specific host that covers a name.
// Hosts without a rule that accept returns true for are skipped. The result is nil if there is
// none.
func (x ruleIndex) find(namespace string, name registry.Hostname, accept func(*destinationRule) bool) []*rule {
	at := func(host registry.Hostname) []*rule {
		counts := func(r *destinationRule) bool { return !r.ofPolicies() && accept(r) }
		if h, ok := x.hosts.Get(ruleKey{namespace, host}); ok && slices.ContainsFunc(h.objects, counts) {
			return h.merged
		}
		return nil
	}
	if found := at(name); found != nil {
		return found
	}
	if n, _ := x.wildcards.Get(namespace); n == 0 {
		return nil
	}
	for candidate := range wildcardsOf(name) {
		if found := at(candidate); found != nil {
			return found
		}
	}
	return nil
}
