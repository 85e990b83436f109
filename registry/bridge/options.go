// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// Options configure a Bridge. The zero value works.
type Options struct {
	// Provider, Cluster, Updater and Logger are those of memory.Options. The Logger also
	// gets, once each, errors of the catalogue, lists that are held back and defects, and
	// their ends.
	Provider registry.ProviderID
	Cluster  registry.ClusterID
	Updater  xdsupdate.XDSUpdater
	Logger   *slog.Logger

	// Interval is the time between two lists of a catalogue that is no Watcher, and of
	// any whose list is held back; each time up to a tenth longer, by chance. The default
	// is 30 s.
	Interval time.Duration
	// Resync is the longest time between two lists of a Watcher. The default is 10
	// minutes.
	Resync time.Duration
	// MinInterval is the time between a list and the next one when a Watcher tells of one
	// change after the other. The default is 100 ms.
	MinInterval time.Duration
	// ListTimeout is when the context of a List ends. The default is one minute.
	ListTimeout time.Duration
	// MaxBackoff is the longest time between two attempts after errors, but for chance.
	// The default is 30 s.
	MaxBackoff time.Duration

	// MaxDrop is the share of services, and of endpoints, that a list may drop without
	// being confirmed: the services by name, the endpoints by number. The default is 0.5;
	// 1 is no limit.
	MaxDrop float64
	// Confirmations is how many further lists have to confirm one that is held back. The
	// default is 3; negative: none.
	Confirmations int
}

func (o Options) withDefaults() Options {
	o.Interval = cmp.Or(o.Interval, 30*time.Second)
	o.Resync = cmp.Or(o.Resync, 10*time.Minute)
	o.MinInterval = cmp.Or(o.MinInterval, 100*time.Millisecond)
	o.ListTimeout = cmp.Or(o.ListTimeout, time.Minute)
	o.MaxBackoff = cmp.Or(o.MaxBackoff, 30*time.Second)
	o.MaxDrop = cmp.Or(o.MaxDrop, 0.5)
	o.Confirmations = cmp.Or(o.Confirmations, 3)
	return o
}
