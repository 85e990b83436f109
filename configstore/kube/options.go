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
	// Logger gets each error once, when it appears. Default: nil, which discards. Nothing
	// goes to klog, but for client-go's traces of lists that take longer than ten seconds,
	// in a program that has set the verbosity of klog to 2 or more.
	Logger *slog.Logger
	// Domain is written to the Domain of every object. Default: empty.
	Domain string
	// Revision, unless empty, restricts the cache to objects whose label
	// istio.io/rev is Revision, and those that have no such label. Default: all
	// objects.
	Revision string
	// Namespaces says whether the objects of a namespace are in the cache; those of
	// cluster-scoped kinds always are. It is called from any goroutine, and always
	// gives the same answer: Cache.SelectNamespaces changes it. If it panics, what is in
	// the cache stays, and what is not stays out. Default: nil, all namespaces.
	Namespaces func(namespace string) bool
	// OnlyNamespaces, unless empty, restricts the cache to the objects of these
	// namespaces, and what it asks the API server for, too: a Role in each of them is
	// enough. Namespaces restricts it further, and cluster-scoped kinds are read as
	// ever. Default: all namespaces are read at once, which takes a ClusterRole.
	OnlyNamespaces []string
	// Optional are kinds that the API server may refuse: one that it forbids, or does not
	// know, counts as read, without objects, until it gives them. Those that the schemas do
	// not have are ignored. Default: none. HasSynced waits until everything may be read, so
	// that a program that starts before its rights do does not take an empty state for the
	// whole.
	Optional []configstore.GroupVersionKind
	// SkipValidation accepts objects that break the rules of their schema's
	// Validate, from the API server as well as in writes. Default: an object that
	// its schema finds invalid is an error, and its last good state stays.
	SkipValidation bool
	// HistoryLimit is the number of changes that are kept for Watch. Default, for
	// values below 1: that of package memory.
	HistoryLimit int
	// WriteTimeout is how long a write waits for the API server. Default, for
	// values below 1: 30 seconds.
	WriteTimeout time.Duration
	// MaxBackoff is the longest time between two attempts to reach the API server
	// again, of which the first is made within a second; up to half of it is added at
	// random, so that clients do not come all at once. A cache is up to date again that
	// long after the end of an outage, however long that was. Default, for values below 1:
	// 3 seconds.
	MaxBackoff time.Duration
}

// withDefaults returns the options with what is not given filled in.
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
