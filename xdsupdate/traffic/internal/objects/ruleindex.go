// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"iter"
	"slices"

	"github.com/pilotkit/pilotkit/internal/pmap"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/hostname"
)

// RuleIndex indexes DestinationRules by namespace and host. It is immutable. A change copies only
// the entries that it concerns. The zero value is empty.
type RuleIndex struct {
	hosts pmap.Map[ruleKey, *HostRules]
	// wildcards counts the wildcard hosts by namespace. Without any, a lookup is one step.
	wildcards pmap.Map[string, int]
	// namespaces are the namespaces with DestinationRules for a host.
	namespaces pmap.Map[registry.Hostname, []string]
}

type ruleKey struct {
	namespace string
	host      registry.Hostname
}

// HostRules are the DestinationRules for a host in a namespace. It is immutable.
type HostRules struct {
	objects []*DestinationRule // sorted by compareSelective
	// Merged are the merged rules of users, and policies are the rules generated from
	// BackendTLSPolicies.
	Merged   []*Rule
	policies []*DestinationRule
}

func newHostRules(objects []*DestinationRule) *HostRules {
	h := &HostRules{objects: objects}
	var own []*DestinationRule
	for _, r := range objects {
		if r.OfPolicies() {
			h.policies = append(h.policies, r)
		} else {
			own = append(own, r)
		}
	}
	h.Merged = NewRules(own)
	return h
}

// newRuleIndex returns the index of unsorted DestinationRules.
func newRuleIndex(rules []*DestinationRule) RuleIndex {
	lists := make(map[ruleKey][]*DestinationRule)
	for _, r := range rules {
		key := ruleKey{r.Namespace, r.Host}
		lists[key] = append(lists[key], r)
	}
	var x RuleIndex
	for _, list := range lists {
		slices.SortFunc(list, compareSelective)
		x = x.change(list[0], func([]*DestinationRule) []*DestinationRule { return list })
	}
	return x
}

// with returns the index with one DestinationRule replaced by another. Both may be nil.
func (x RuleIndex) with(before, after *DestinationRule) RuleIndex {
	if before != nil {
		x = x.change(before, func(list []*DestinationRule) []*DestinationRule {
			return slices.DeleteFunc(list, func(r *DestinationRule) bool { return r.ObjectName == before.ObjectName })
		})
	}
	if after != nil {
		x = x.change(after, func(list []*DestinationRule) []*DestinationRule {
			i, _ := slices.BinarySearchFunc(list, after, compareSelective)
			return slices.Insert(list, i, after)
		})
	}
	return x
}

// change edits the list of DestinationRules with the same host and namespace as r.
func (x RuleIndex) change(r *DestinationRule, edit func([]*DestinationRule) []*DestinationRule) RuleIndex {
	key := ruleKey{r.Namespace, r.Host}
	old, had := x.hosts.Get(key)
	var list []*DestinationRule
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
	if r.Host.IsWildcard() && had != has {
		n, _ := x.wildcards.Get(r.Namespace)
		if has {
			n++
		} else {
			n--
		}
		x.wildcards = x.wildcards.Set(r.Namespace, n)
	}
	return x
}

// For returns the DestinationRules for a host in a namespace, or nil.
func (x RuleIndex) For(namespace string, host registry.Hostname) *HostRules {
	h, _ := x.hosts.Get(ruleKey{namespace, host})
	return h
}

// namespacesWith returns the namespaces of hosts with one namespace added or removed.
func (x RuleIndex) namespacesWith(key ruleKey, has bool) pmap.Map[registry.Hostname, []string] {
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

// About yields the DestinationRules of all namespaces that cover a host name.
func (x RuleIndex) About(name registry.Hostname) iter.Seq[*DestinationRule] {
	return func(yield func(*DestinationRule) bool) {
		for h := range x.HostsAbout(name) {
			for _, r := range h.objects {
				if !yield(r) {
					return
				}
			}
		}
	}
}

// HostsAbout yields the result of about, grouped by host and namespace.
func (x RuleIndex) HostsAbout(name registry.Hostname) iter.Seq[*HostRules] {
	return func(yield func(*HostRules) bool) {
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
		for wildcard := range hostname.Wildcards(name) {
			if wildcard != name && !at(wildcard) {
				return
			}
		}
	}
}

// find returns the rules of users in a namespace for the most specific host that covers a name.
// Hosts without a rule that accept returns true for are skipped. The result is nil if there is
// none.
func (x RuleIndex) find(namespace string, name registry.Hostname, accept func(*DestinationRule) bool) []*Rule {
	at := func(host registry.Hostname) []*Rule {
		counts := func(r *DestinationRule) bool { return !r.OfPolicies() && accept(r) }
		if h, ok := x.hosts.Get(ruleKey{namespace, host}); ok && slices.ContainsFunc(h.objects, counts) {
			return h.Merged
		}
		return nil
	}
	if found := at(name); found != nil {
		return found
	}
	if n, _ := x.wildcards.Get(namespace); n == 0 {
		return nil
	}
	for candidate := range hostname.Wildcards(name) {
		if found := at(candidate); found != nil {
			return found
		}
	}
	return nil
}
