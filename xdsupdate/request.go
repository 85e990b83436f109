// SPDX-License-Identifier: Apache-2.0

package xdsupdate

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// TriggerReason says what caused a push. Programs may have others than these.
type TriggerReason string

// The reasons of pushes that this module asks for, with the texts of Istio 1.30.
const (
	ReasonEndpoint TriggerReason = "endpoint"
	ReasonConfig   TriggerReason = "config"
	ReasonService  TriggerReason = "service"
	ReasonCluster  TriggerReason = "cluster"
	ReasonUnknown  TriggerReason = "unknown"
)

// PushRequest asks for a push. It is immutable once it was handed over.
type PushRequest struct {
	// Full: definitions changed, not only endpoints.
	Full bool
	// Forced: push everything to all clients. It implies Full.
	Forced bool
	// ConfigsUpdated has the keys of the changes. Nil or empty means that everything may have
	// changed.
	ConfigsUpdated map[ConfigKey]struct{}
	// Reason counts the causes.
	Reason map[TriggerReason]int
	// Start is when the first of the merged requests was made.
	Start time.Time
}

// Merge returns a request that asks for everything that r and other ask for: it
// is full or forced if one of them is, names the keys of both, or everything if
// one of them does, adds the reasons, and has the earlier Start that is not zero.
//
// It is associative, and nil, for r or other, is its identity. Neither request is
// changed. (In Istio 1.26 and later, merging a
// request for everything with one that has keys narrows it to the keys.)
func (r *PushRequest) Merge(other *PushRequest) *PushRequest {
	switch {
	case r == nil:
		return other
	case other == nil:
		return r
	}
	var both pending
	both.add(r)
	both.add(other)
	return both.request()
}

// Everything reports whether the request names no keys, so that everything may
// have changed.
func (r *PushRequest) Everything() bool { return len(r.ConfigsUpdated) == 0 }

// Has reports whether the config or service with the key may have changed.
func (r *PushRequest) Has(key ConfigKey) bool {
	if r.Everything() {
		return true
	}
	_, ok := r.ConfigsUpdated[key]
	return ok
}

// aboutSecurity reports whether the request names an object that says who may do what.
func (r *PushRequest) aboutSecurity() bool {
	for key := range r.ConfigsUpdated {
		if key.Kind.Group == "security.istio.io" {
			return true
		}
	}
	return false
}

// Keys returns ConfigsUpdated, sorted by ConfigKey.Compare; nil if the request
// is for everything.
func (r *PushRequest) Keys() []ConfigKey {
	if r.Everything() {
		return nil
	}
	return slices.SortedFunc(maps.Keys(r.ConfigsUpdated), ConfigKey.Compare)
}

// String describes the request in one line, for example
// "full push of ServiceEntry/ns/a.example.com (service 2, endpoint 1)"; keys and
// reasons are sorted.
func (r *PushRequest) String() string {
	if r == nil {
		return "no push"
	}
	var b strings.Builder
	switch {
	case r.Forced:
		b.WriteString("forced push of ")
	case r.Full:
		b.WriteString("full push of ")
	default:
		b.WriteString("endpoint push of ")
	}
	if r.Everything() {
		b.WriteString("everything")
	}
	for i, key := range r.Keys() {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(key.String())
	}
	for i, reason := range slices.Sorted(maps.Keys(r.Reason)) {
		separator := " ("
		if i > 0 {
			separator = ", "
		}
		fmt.Fprintf(&b, "%s%s %d", separator, reason, r.Reason[reason])
	}
	if len(r.Reason) > 0 {
		b.WriteByte(')')
	}
	return b.String()
}

func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
