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
	// Provider, Cluster, Updater and Logger have the meaning of memory.Options. The Logger also
	// receives the beginning and the end of errors of the catalogue, of held lists and of defects,
	// each once.
	Provider registry.ProviderID
	Cluster  registry.ClusterID
	Updater  xdsupdate.XDSUpdater
	Logger   *slog.Logger

	// Interval is the time between two lists of a catalogue that is not a Watcher, and of any
	// catalogue whose list is held back, plus a jitter of up to a tenth. The default is 30 s.
	Interval time.Duration
	// Resync is the maximum time between two lists of a Watcher. The default is 10 minutes.
	Resync time.Duration
	// MinInterval is the minimum time between two lists when a Watcher reports changes in quick
	// succession. The default is 100 ms.
	MinInterval time.Duration
	// ListTimeout is the timeout of the context of List. The default is one minute.
	ListTimeout time.Duration
	// MaxBackoff is the maximum backoff after errors, before jitter. The default is 30 s.
	MaxBackoff time.Duration

	// MaxDrop is the share of services, and of endpoints, that a list may drop without
	// confirmation. It compares the services by name, the endpoints by number. The default is 0.5;
	// 1 is no limit.
	MaxDrop float64
	// Confirmations is the number of further lists that have to confirm a list that is held back.
	// The default is 3; a negative value means none.
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
