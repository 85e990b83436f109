// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"go.uber.org/atomic"
	"golang.org/x/time/rate"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/options"
)

// The defaults of StatusOptions.
const (
	DefaultStatusRate    = 10
	DefaultLeaseDuration = 15 * time.Second
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
	// LeaseDuration is how long after the death of the process that writes another
	// one takes over, at most. Default, for values below a second:
	// DefaultLeaseDuration.
	LeaseDuration time.Duration
	// Rate is the largest number of objects whose status is read or written per
	// second. Default, for values that are not positive: DefaultStatusRate.
	Rate float64
}

// StatusWriter writes what becomes of objects into their statuses: the generation
// that was seen last, whether the cache could take it (ConditionAccepted), and
// whatever the host reports. It writes the objects of those kinds of a Cache that
// have a status; statuses of a message type with the fields observed_generation and
// conditions, as Istio's have, can be read back.
//
// Fields and conditions of others stay. An object's status is written when what
// there is to say has changed, by one process at a time, and never for a generation
// that is not the latest. Create it with NewStatusWriter; a Cache has at most one.
type StatusWriter struct {
	cache  *Cache
	config *rest.Config
	opts   StatusOptions
	queue  workqueue.TypedRateLimitingInterface[configstore.ConfigKey]
	// leading is set while this process is the one that writes.
	leading atomic.Bool

	mu      sync.Mutex
	objects map[configstore.ConfigKey]*reported
}

// reported is what there is to say about an object.
type reported struct {
	// generation is what accepted is about.
	generation int64
	accepted   Condition
	// conditions are the host's, by type.
	conditions map[string]Condition
}

// NewStatusWriter returns the writer of a cache's statuses, which uses config for
// the Lease. The error is that of an unusable config.
func NewStatusWriter(cache *Cache, config *rest.Config, opts ...StatusOptions) (*StatusWriter, error) {
	o := options.One("kube.NewStatusWriter", opts)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Rate <= 0 {
		o.Rate = DefaultStatusRate
	}
	if o.LeaseDuration < time.Second {
		o.LeaseDuration = DefaultLeaseDuration
	}
	if o.Identity == "" {
		host, err := os.Hostname()
		if err != nil {
			return nil, fmt.Errorf("kube.NewStatusWriter: %w", err)
		}
		o.Identity = fmt.Sprintf("%s-%d", host, os.Getpid())
	}
	return &StatusWriter{
		cache: cache, config: rest.CopyConfig(config), opts: o,
		objects: map[configstore.ConfigKey]*reported{},
	}, nil
}

// Leading reports whether this process is the one that writes.
func (w *StatusWriter) Leading() bool { return w.leading.Load() }

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

// update takes what the cache has of an object, and conditions of the host, and has
// the status written if there is something new to say. What it writes itself comes
// back as a change of the object, and is nothing new.
func (w *StatusWriter) update(key configstore.ConfigKey, conditions []Condition) {
	w.mu.Lock()
	generation, accepted := w.cache.accepted(key)
	if generation == 0 {
		delete(w.objects, key)
		w.mu.Unlock()
		return
	}
	r := w.objects[key]
	if r == nil {
		r = &reported{conditions: map[string]Condition{}}
		w.objects[key] = r
	}
	changed := r.generation != generation || r.accepted != accepted
	r.generation, r.accepted = generation, accepted
	for _, c := range conditions {
		if r.conditions[c.Type] != c {
			r.conditions[c.Type], changed = c, true
		}
	}
	queue := w.queue
	w.mu.Unlock()
	if changed && queue != nil {
		queue.Add(key)
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

func (w *StatusWriter) forget(key configstore.ConfigKey) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.objects, key)
}

// Run writes statuses until stop is closed, while this process has the Lease if
// there is one. The cache must run, too. A second call panics.
func (w *StatusWriter) Run(stop <-chan struct{}) {
	ctx, cancel := context.WithCancel(quiet(context.Background())) //nolint:forbidigo // The life of Run.
	defer cancel()
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[configstore.ConfigKey](time.Second, time.Minute))
	w.mu.Lock()
	twice := w.queue != nil
	w.queue = queue
	w.mu.Unlock()
	if twice {
		panic("kube: StatusWriter.Run was called twice")
	}
	defer w.listen()()
	var workers sync.WaitGroup
	defer workers.Wait()
	defer queue.ShutDown()
	workers.Go(func() { w.work(ctx, queue) })
	workers.Go(func() { w.campaign(ctx) })
	<-stop
	cancel()
}

// listen takes the verdicts of the cache until the returned function is called.
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
	for _, e := range w.cache.Errors() { // SubscribeBatch gives what is in the cache.
		judged(e.Object)
	}
	cancel := w.cache.SubscribeBatch(kinds, w.handle)
	return func() {
		cancel()
		w.cache.onVerdict(nil)
	}
}

// lead is called when this process becomes the one that writes, or is it no more.
// A new leader looks at all objects.
func (w *StatusWriter) lead(leading bool) {
	w.leading.Store(leading)
	if !leading {
		return
	}
	w.mu.Lock()
	keys := slices.SortedFunc(maps.Keys(w.objects), configstore.ConfigKey.Compare)
	queue := w.queue
	w.mu.Unlock()
	for _, key := range keys {
		queue.Add(key)
	}
}

// work writes what is queued, at the limited rate, until the queue is shut down.
func (w *StatusWriter) work(ctx context.Context, queue workqueue.TypedRateLimitingInterface[configstore.ConfigKey]) {
	limiter := rate.NewLimiter(rate.Limit(w.opts.Rate), int(cmp.Or(w.opts.Rate, 1))+1)
	for {
		key, ended := queue.Get()
		if ended {
			return
		}
		var err error
		if w.Leading() && limiter.Wait(ctx) == nil {
			err = w.write(ctx, key)
		}
		queue.Done(key)
		switch {
		case err == nil || ctx.Err() != nil:
			queue.Forget(key)
		default:
			w.opts.Logger.Warn("status was not written", slog.String("object", key.Object()), slog.Any("error", err))
			queue.AddRateLimited(key)
		}
	}
}

// write brings the status of one object up to date.
func (w *StatusWriter) write(ctx context.Context, key configstore.ConfigKey) error {
	generation, conditions := w.known(key)
	if generation == 0 {
		return nil
	}
	i, _ := w.cache.Schemas().Index(&key.Kind)
	one := &write{cache: w.cache, kind: w.cache.kinds[i], op: configstore.OpUpdateStatus, config: configstore.Config{
		Meta: configstore.Meta{GroupVersionKind: key.Kind, Name: key.Name, Namespace: key.Namespace},
	}}
	one.ctx, one.cancel = context.WithTimeout(ctx, w.cache.opts.WriteTimeout)
	defer one.cancel()
	_, err := one.modify(func(s *stored) (*stored, error) {
		if s.object.Generation != generation {
			return s, nil // The cache will see it, and then it is our turn again.
		}
		text, changed, err := mergeStatus(s.fields["status"], generation, conditions, time.Now())
		if err != nil || !changed {
			return s, err
		}
		s.fields["status"] = text
		return one.put(s, "status")
	})
	if _, err = one.finish("", err); errors.Is(err, configstore.ErrNotFound) {
		w.forget(key) // It is gone, or its kind has no such subresource.
		return nil
	}
	return err
}

// known returns what is to be written about an object; generation 0: nothing.
func (w *StatusWriter) known(key configstore.ConfigKey) (generation int64, conditions []Condition) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.objects[key]
	if r == nil {
		return 0, nil
	}
	conditions = append(conditions, r.accepted)
	for _, name := range slices.Sorted(maps.Keys(r.conditions)) {
		conditions = append(conditions, r.conditions[name])
	}
	return r.generation, conditions
}
