// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"go.uber.org/atomic"
	"k8s.io/client-go/rest"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/kube/internal/statusqueue"
	"github.com/pilotkit/pilotkit/internal/options"
)

// The defaults of StatusOptions.
const (
	defaultStatusRate    = statusqueue.DefaultRate
	defaultStatusWorkers = statusqueue.DefaultWorkers
	defaultLeaseDuration = 15 * time.Second
)

// StatusOptions are the options of a StatusWriter. The zero value works; it writes
// without an election, for a program that runs once.
type StatusOptions struct {
	// Logger gets a warning for each status that could not be written and will be
	// tried again. Default: nil, which discards.
	Logger *slog.Logger
	// Lease is the name of the Lease that decides which of several processes writes,
	// and LeaseNamespace its namespace; it is made if it does not exist. Default:
	// empty, this process writes.
	Lease, LeaseNamespace string
	// Identity is the name of this process in the Lease, different from all others.
	// Default: the host's name and the process number.
	Identity string
	// LeaseDuration is how long after the last sign of life of the process that writes
	// another one takes over; a process that cannot renew the Lease stops to write after
	// two thirds of it. Default, for values below a second: 15 seconds.
	LeaseDuration time.Duration
	// Rate is the largest number of objects whose status is read and written per
	// second. One whose status is right already, as the cache shows it, takes no request
	// and does not count. Default, for values that are not positive: 100.
	Rate float64
	// Workers is how many statuses are written at the same time. Each takes two requests
	// one after the other: where both take 5 ms one worker writes 200 statuses per second, if
	// Rate allows it. Default, for values below 1: 4.
	Workers int
}

// StatusWriter writes what becomes of objects into their statuses: the generation
// that was seen last, whether the cache could take it (ConditionAccepted), and
// whatever the program reports. It writes the objects of those kinds of a Cache that
// have a status; statuses of a message type with the fields observed_generation and
// conditions, as Istio's have, can be read back.
//
// Fields and conditions of others stay. An object's status is written when it does not
// say what there is to say, because that has changed or because somebody else has changed
// ours, never for a generation or an object that is not the latest, and by one process at
// a time: see the package comment. What has changed comes before what is only repaired, or
// looked at by a new leader. Create it with NewStatusWriter; a Cache has at most one.
type StatusWriter struct {
	cache *Cache
	opts  StatusOptions
	now   func() time.Time
	ran   atomic.Bool
	queue *statusqueue.Queue[configstore.ConfigKey] // since Run; used while this process leads
	// election decides who writes; nil: this process, while running is set.
	election *election
	running  atomic.Bool

	mu      sync.Mutex
	objects map[configstore.ConfigKey]*reported
}

// NewStatusWriter returns the writer of a cache's statuses, which uses config for
// the Lease. The error is that of an unusable config.
func NewStatusWriter(cache *Cache, config *rest.Config, opts ...StatusOptions) (*StatusWriter, error) {
	o, err := options.One("kube.NewStatusWriter", opts).withDefaults()
	if err != nil {
		return nil, fmt.Errorf("kube.NewStatusWriter: %w", err)
	}
	w := &StatusWriter{
		cache: cache, opts: o, now: time.Now,
		objects: map[configstore.ConfigKey]*reported{},
	}
	if o.Lease == "" {
		return w, nil
	}
	if w.election, err = newElection(config, o, func() time.Time { return w.now() }); err != nil {
		return nil, fmt.Errorf("kube.NewStatusWriter: %w", err)
	}
	return w, nil
}

// withDefaults returns the options with what is not given filled in.
func (o StatusOptions) withDefaults() (StatusOptions, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Rate <= 0 {
		o.Rate = defaultStatusRate
	}
	if o.Workers < 1 {
		o.Workers = defaultStatusWorkers
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
func (w *StatusWriter) Leading() bool { return w.remaining() > 0 }

// remaining is how long this process may write if it does not renew the Lease.
func (w *StatusWriter) remaining() time.Duration {
	switch {
	case w.election != nil:
		return w.election.remaining()
	case w.running.Load():
		return w.cache.opts.WriteTimeout
	default:
		return 0
	}
}

// Report sets conditions of an object, in addition to what was reported of other
// types before. They are written with the generation that the cache has seen last, and
// forgotten when the object goes. An object that the cache does not know is left alone.
func (w *StatusWriter) Report(key configstore.ConfigKey, conditions ...Condition) {
	schema, ok := w.cache.Schemas().Find(key.Kind)
	if !ok || schema.Status == nil {
		return
	}
	key.Kind = schema.GroupVersionKind
	w.update(key, conditions)
}

// Run writes statuses once the cache has synced, until stop is closed, while this process
// has the Lease if there is one. The cache must run, too. A second call panics.
func (w *StatusWriter) Run(stop <-chan struct{}) {
	if w.ran.Swap(true) {
		panic("kube: StatusWriter.Run was called twice")
	}
	ctx, cancel := context.WithCancel(quiet(context.Background())) //nolint:forbidigo // The life of Run.
	w.queue = statusqueue.New[configstore.ConfigKey]()
	var running sync.WaitGroup
	running.Go(func() { w.run(ctx) })
	<-stop
	cancel()
	w.queue.ShutDown()
	running.Wait()
	if w.election != nil {
		w.election.release(quiet(context.Background())) //nolint:forbidigo // That of Run has ended.
	}
}

func (w *StatusWriter) run(ctx context.Context) {
	if configstore.WaitForSync(ctx, w.cache) != nil {
		return // It was stopped.
	}
	defer w.listen()()
	defer w.queue.Start(ctx, statusqueue.Work[configstore.ConfigKey]{
		Rate: w.opts.Rate, Workers: w.opts.Workers, Logger: w.opts.Logger, Object: configstore.ConfigKey.Object, Remaining: w.remaining,
		Pending: func(key configstore.ConfigKey) (bool, error) { return w.mustWrite(key), nil }, Write: w.write,
	})()
	if w.election != nil {
		w.election.run(ctx, w.sweep)
		return
	}
	w.running.Store(true)
	defer w.running.Store(false)
	w.sweep()
	<-ctx.Done()
}

// listen takes what the cache has, and then its events and verdicts until the returned
// function is called.
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
	for _, kind := range kinds {
		for _, c := range w.cache.List(kind, configstore.NamespaceAll) {
			w.update(c.Key(), nil)
		}
	}
	cancel := w.cache.SubscribeBatch(kinds, w.handle)
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
		w.update(c.Curr.Key(), nil) // It may have been created again.
	}
}

// sweep has all objects looked at.
func (w *StatusWriter) sweep() {
	w.mu.Lock()
	keys := slices.SortedFunc(maps.Keys(w.objects), configstore.ConfigKey.Compare)
	w.mu.Unlock()
	for _, key := range keys {
		w.queue.Add(key)
	}
}
