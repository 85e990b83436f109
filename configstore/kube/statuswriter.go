// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/kube/internal/statuswriter"
	"github.com/pilotkit/pilotkit/internal/options"
)

// defaultLeaseDuration is the default of StatusOptions.LeaseDuration.
const defaultLeaseDuration = 15 * time.Second

// StatusOptions are the options of a StatusWriter. The zero value works: it writes without an
// election, for a control plane with one replica.
type StatusOptions struct {
	// Logger gets a warning for each status write that failed and will be retried. Default: nil,
	// which discards.
	Logger *slog.Logger
	// Lease is the name of the Lease that elects the process that writes, and LeaseNamespace its
	// namespace; the Lease is created if it does not exist. Default: empty, this process writes
	// without an election.
	Lease, LeaseNamespace string
	// Identity is the name of this process in the Lease. It must differ from the names of all other
	// processes. Default: the host's name and the process number.
	Identity string
	// LeaseDuration is the time after the leader's last renewal until another process takes over. A
	// leader that cannot renew the Lease stops writing after two thirds of it. Default, for values
	// below a second: 15 seconds.
	LeaseDuration time.Duration
	// Rate is the maximum number of objects per second whose status is read and written. An object
	// whose cached status is already correct takes no request and does not count. Default, for
	// values that are not positive: 100.
	Rate float64
	// Workers is the number of statuses that are written concurrently. Each write takes two
	// sequential requests: if both together take 5 ms, one worker writes 200 statuses per second,
	// as far as Rate allows. Default, for values below 1: 4.
	Workers int
}

// StatusWriter writes the outcome of objects into their statuses: the observed generation, whether
// the cache accepted it (ConditionAccepted), and the conditions that the host reports. It writes
// the kinds of a Cache whose schemas have a status. Statuses of a message type with the fields
// observed_generation and conditions, as in Istio's API, can be read back.
//
// Fields and conditions of others stay. The writer writes an object's status if it differs from the
// wanted one, because the wanted status has changed or because somebody else has changed the
// writer's conditions. It never writes for an outdated generation or object, and only one process
// writes at a time: see the package comment. New changes have priority over repairs and over the
// objects that a new leader checks. Create it with NewStatusWriter; a Cache has at most one.
type StatusWriter struct {
	cache    *Cache
	now      func() time.Time
	election *Election
	writer   *statuswriter.Writer[configstore.ConfigKey]

	mu      sync.Mutex
	objects map[configstore.ConfigKey]*reported
}

// NewStatusWriter returns a writer for the statuses of a cache's objects. It uses config for the
// Lease. It returns an error if the config is unusable.
func NewStatusWriter(cache *Cache, config *rest.Config, opts ...StatusOptions) (*StatusWriter, error) {
	o, err := options.One("kube.NewStatusWriter", opts).withDefaults()
	if err != nil {
		return nil, fmt.Errorf("kube.NewStatusWriter: %w", err)
	}
	w := &StatusWriter{cache: cache, now: time.Now, objects: map[configstore.ConfigKey]*reported{}}
	if w.election, err = newElection(config, o, func() time.Time { return w.now() }); err != nil {
		return nil, fmt.Errorf("kube.NewStatusWriter: %w", err)
	}
	w.election.alone = cache.opts.WriteTimeout
	w.writer = &statuswriter.Writer[configstore.ConfigKey]{
		Name: "kube: StatusWriter", Election: w.election, Cache: cache, Listen: w.listen, Ours: w.all,
		Object:  configstore.ConfigKey.Object,
		Pending: func(key configstore.ConfigKey) (bool, error) { return w.mustWrite(key), nil },
		Write:   func(ctx context.Context, key configstore.ConfigKey) error { return w.write(quiet(ctx), key) },
		Rate:    o.Rate, Workers: o.Workers, Logger: o.Logger,
	}
	return w, nil
}

// withDefaults returns a copy of the options with the defaults filled in.
func (o StatusOptions) withDefaults() (StatusOptions, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.LeaseDuration < time.Second {
		o.LeaseDuration = defaultLeaseDuration
	}
	if o.Identity == "" {
		host, err := os.Hostname()
		if err != nil {
			return o, err
		}
		o.Identity = fmt.Sprintf("%s-%d", host, os.Getpid())
	}
	return o, nil
}

// Leading reports whether this process is the one that writes.
func (w *StatusWriter) Leading() bool { return w.writer.Leading() }

// Report sets conditions of an object; conditions of other types that were reported before stay.
// They are written with the latest generation in the cache, and dropped when the object is deleted.
// Report ignores objects that the cache does not know.
func (w *StatusWriter) Report(key configstore.ConfigKey, conditions ...Condition) {
	schema, ok := w.cache.Schemas().Find(key.Kind)
	if !ok || schema.Status == nil {
		return
	}
	key.Kind = schema.GroupVersionKind
	w.update(key, conditions)
}

// Run writes statuses once the cache has synced, until stop is closed, while this process holds the
// Lease if there is one. The cache must run, too. A second call panics.
func (w *StatusWriter) Run(stop <-chan struct{}) { w.writer.Run(stop) }

// listen subscribes to the cache's events and verdicts, beginning with its present objects, until
// the returned function is called.
func (w *StatusWriter) listen() (end func()) {
	var kinds []configstore.GroupVersionKind
	for _, k := range w.cache.kinds {
		if k.schema.Status != nil {
			kinds = append(kinds, k.gvk())
		}
	}
	judged := func(key configstore.ConfigKey) {
		if slices.Contains(kinds, key.Kind) {
			w.update(key, nil)
		}
	}
	w.cache.onVerdict(judged)
	for _, e := range w.cache.Errors() {
		judged(e.Object)
	}
	objects, cancel := w.cache.Subscribe(kinds, w.handle)
	for _, c := range objects {
		w.update(c.Key(), nil)
	}
	return func() {
		cancel()
		w.cache.onVerdict(nil)
	}
}

func (w *StatusWriter) handle(changes []configstore.Change) {
	for _, c := range changes {
		if c.Event == configstore.EventDelete {
			w.forget(c.Curr.Key())
		}
		w.update(c.Curr.Key(), nil) // An object that was deleted may have been created again.
	}
}

// all returns all objects with a wanted status, sorted.
func (w *StatusWriter) all() iter.Seq[configstore.ConfigKey] {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Values(slices.SortedFunc(maps.Keys(w.objects), configstore.ConfigKey.Compare))
}
