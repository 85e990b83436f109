// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"log/slog"
	"slices"
	"time"

	"github.com/pilotkit/pilotkit/configstore"
)

// The defaults of Options.
const (
	defaultWriteTimeout = 30 * time.Second
	defaultMaxBackoff   = 3 * time.Second
)

// Options of a Cache. The zero value works.
type Options struct {
	// Logger gets each error once, when it appears. Default: nil, which discards. Nothing goes to
	// klog except client-go's traces of lists that take longer than ten seconds, and only if the
	// host has set the verbosity of klog to 2 or more.
	Logger *slog.Logger
	// Domain is written to the Domain of every object. Default: empty.
	Domain string
	// Revision, unless empty, restricts the cache to objects whose label istio.io/rev is Revision,
	// and to objects without that label. Default: all objects.
	Revision string
	// Namespaces reports whether the cache includes the objects of a namespace; objects of
	// cluster-scoped kinds are always included. It is called from any goroutine and must be a pure
	// function: to change the selection, call Cache.SelectNamespaces. If it panics, objects in the
	// cache stay and new objects are not added. Default: nil, all namespaces.
	Namespaces func(namespace string) bool
	// OnlyNamespaces, unless empty, restricts the cache, and its requests to the API server, to
	// these namespaces, so that a Role in each of them is enough. Namespaces restricts the cache
	// further. Cluster-scoped kinds are not affected. Default: all namespaces are read with one
	// request per kind, which takes a ClusterRole.
	OnlyNamespaces []string
	// Optional lists kinds that the API server may reject: a kind that it forbids or does not know
	// counts as synced, without objects, until it can be listed. Kinds that the schemas do not have
	// are ignored. Default: none. HasSynced waits until every kind may be listed, because a host
	// that starts before its access rights are granted must not take an empty state for the
	// complete one.
	Optional []configstore.GroupVersionKind
	// SkipValidation accepts objects that break the rules of their schema's
	// Validate, from the API server as well as in writes. Default: an object that
	// its schema finds invalid is an error, and its last good state stays.
	SkipValidation bool
	// HistoryLimit is the number of changes that are kept for Watch. Default, for values below 1:
	// the default of package memory.
	HistoryLimit int
	// WriteTimeout is how long a write waits for the API server. Default, for
	// values below 1: 30 seconds.
	WriteTimeout time.Duration
	// MaxBackoff is the maximum backoff between two attempts to reach the API server, before
	// jitter; the first retry follows within a second. The jitter adds up to half of the backoff,
	// so that clients do not reconnect all at once. After an outage of any length the cache is up
	// to date again within that time. Default, for values below 1: 3 seconds.
	MaxBackoff time.Duration
}

// withDefaults returns a copy of the options with the defaults filled in.
func (o Options) withDefaults() Options {
	namespaces := slices.Clone(o.OnlyNamespaces)
	slices.Sort(namespaces)
	o.OnlyNamespaces = slices.Compact(namespaces)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.WriteTimeout < 1 {
		o.WriteTimeout = defaultWriteTimeout
	}
	if o.MaxBackoff < 1 {
		o.MaxBackoff = defaultMaxBackoff
	}
	return o
}
