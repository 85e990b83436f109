// SPDX-License-Identifier: Apache-2.0

package ingress

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"go.uber.org/atomic"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/kube/internal/follow"
	"github.com/pilotkit/pilotkit/internal/options"
)

// CacheOptions are the options of a Cache. The zero value works.
type CacheOptions struct {
	Options
	// Mesh contains the initial settings of the mesh; Cache.UpdateMesh replaces them. Default: nil,
	// DefaultMesh.
	Mesh *Mesh
	// Optional lists kinds of objects that the API server may reject, named as in SourceError.Kind:
	// a kind that it forbids or does not know counts as synced, without objects, until it can be
	// listed. Pods and nodes are needed only for statuses without Mesh.Service. Default: none;
	// HasSynced waits until every kind may be listed.
	Optional []string
	// MaxBackoff is the maximum backoff between two attempts to reach the API server, before
	// jitter, which adds up to half of the backoff. The first retries follow faster. Default, for
	// values below 1: 5 seconds.
	MaxBackoff time.Duration
	// Logger gets each error once, when it appears. Default: nil, which discards.
	Logger *slog.Logger
}

// defaultMaxBackoff is the default of CacheOptions.MaxBackoff.
const defaultMaxBackoff = 5 * time.Second

// merged has the methods of a ConfigStoreCache.
type merged = aggregate.Cache

// Cache is a ConfigStoreCache of the configs that a Converter makes from the Ingresses of an API
// server. Its schemas are Istio's. Writes return ErrReadOnly. Combine a Cache with other stores by
// aggregate.MakeCache. Create a Cache with New.
//
// It is empty until all kinds have been read once, and then publishes everything at once. While the
// API server does not return a kind, its last good state stays, and Errors reports it.
type Cache struct {
	*merged
	stage    *aggregate.Stage
	opts     CacheOptions
	client   kubernetes.Interface
	sources  []*follow.Source
	followed atomic.Bool

	mu        sync.Mutex
	converter *Converter
	// shown are the present statuses of the Ingresses.
	shown map[Key]shownStatus
	// changed are the Ingresses whose present status was received since the last batch.
	changed []Key
	// look is called with Ingresses whose status may differ from the wanted one.
	look func(...Key)
}

// shownStatus is the present status of an Ingress.
type shownStatus struct {
	addresses []networkingv1.IngressLoadBalancerIngress
	deleting  bool
}

// New returns a cache of the configs for an API server's Ingresses. It does not connect: Run does.
// New copies config and returns an error if it is unusable. Requests are rate limited only if
// config says so.
func New(config *rest.Config, opts ...CacheOptions) (*Cache, error) {
	client, err := follow.NewClient(config)
	if err != nil {
		return nil, fmt.Errorf("ingress.New: %w", err)
	}
	return newCache(client, options.One("ingress.New", opts)), nil
}

func newCache(client kubernetes.Interface, o CacheOptions) *Cache {
	if o.MaxBackoff < 1 {
		o.MaxBackoff = defaultMaxBackoff
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	c := &Cache{opts: o, client: client, converter: NewConverter(o.Options), shown: map[Key]shownStatus{}}
	c.converter.logger = o.Logger
	if o.Mesh != nil {
		c.converter.Apply(SetMesh(*o.Mesh))
	}
	c.stage = aggregate.NewStage(nil, istio.Schemas(), nil, aggregate.CacheOptions{Logger: o.Logger})
	c.merged = c.stage.Cache
	c.sources = c.newSources(client)
	return c
}

// Snapshot returns the converter's result for the objects read so far, even before the cache has
// synced.
func (c *Cache) Snapshot() *Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.converter.Snapshot()
}

// UpdateMesh replaces the settings of the mesh.
func (c *Cache) UpdateMesh(m Mesh) { c.apply(SetMesh(m)) }

// Run reads from the API server and delivers events until stop is closed. While the server cannot
// be reached, Run retries and the cache keeps its state. All goroutines that Run started have ended
// when it returns. A second call panics.
func (c *Cache) Run(stop <-chan struct{}) {
	ctx, cancel := context.WithCancel(context.Background()) //nolint:forbidigo // The life of Run.
	var following sync.WaitGroup
	if !c.followed.Swap(true) {
		for _, s := range c.sources {
			following.Go(func() { s.Run(ctx) })
		}
	}
	defer following.Wait()
	defer cancel()
	c.merged.Run(stop)
}

// SourceError is the reason why a kind of objects cannot be read at present, or a config cannot be
// published. The last good state stays.
type SourceError struct {
	// Kind is the resource: "ingresses", "ingressclasses", "services", "pods" or "nodes"; empty for a config.
	Kind string
	// Config is the Gateway or VirtualService that cannot be published; the zero key for a kind.
	Config configstore.ConfigKey
	Err    error
}

// Error returns "list ingresses: " or "publish VirtualService namespace/name: " and the cause.
func (e SourceError) Error() string {
	if e.Kind == "" {
		return "publish " + e.Config.Object() + ": " + e.Err.Error()
	}
	return "list " + e.Kind + ": " + e.Err.Error()
}

// Unwrap returns Err.
func (e SourceError) Unwrap() error { return e.Err }

// Errors returns the present errors: kinds of objects that cannot be read, because the API server
// cannot be reached or rejects the request, and configs that cannot be published. It returns none
// if everything works. The problems of Ingresses are in Snapshot.
func (c *Cache) Errors() []SourceError {
	var out []SourceError
	for _, s := range c.sources {
		if err := s.Err(); err != nil {
			out = append(out, SourceError{Kind: s.Kind(), Err: err})
		}
	}
	refused := c.stage.Refused()
	for _, key := range slices.SortedFunc(maps.Keys(refused), configstore.ConfigKey.Compare) {
		out = append(out, SourceError{Config: key, Err: refused[key]})
	}
	return out
}

// SourceState implements configstore.SourceStater, by Errors.
func (c *Cache) SourceState() configstore.SourceState {
	s, errs := configstore.SourceState{Synced: c.HasSynced()}, c.Errors()
	for _, e := range errs {
		s.Problems = append(s.Problems, configstore.SourceProblem{Object: e.Config, Text: e.Error()})
	}
	if s.Synced {
		s.Freshness = configstore.FreshnessOf(slices.ContainsFunc(errs, func(e SourceError) bool { return e.Kind != "" }))
	}
	return s
}

// HasSynced implements ConfigStoreCache. It returns true once all kinds have been read, and the
// handlers have processed the resulting configs.
func (c *Cache) HasSynced() bool { return c.stage.HasSynced() }

// apply converts changes and publishes the result as one batch. The first batch contains
// everything, once all kinds have been read.
func (c *Cache) apply(changes ...Change) {
	c.stage.Derive(func() []configstore.Change {
		c.mu.Lock()
		defer c.mu.Unlock()
		update := c.converter.Apply(changes...)
		if c.look != nil {
			c.look(slices.Concat(update.Statuses, c.changed)...)
		}
		c.changed = nil
		return update.Changes
	})
	if !slices.ContainsFunc(c.sources, func(s *follow.Source) bool { return !s.HasSynced() }) {
		c.stage.Begin(func() []configstore.Change { return c.Snapshot().configs.Adds() })
	}
}

// show records the present status of an Ingress.
func (c *Cache) show(object metav1.Object, gone bool) {
	key := Key{object.GetNamespace(), object.GetName()}
	c.changed = append(c.changed, key)
	if o, ok := object.(*networkingv1.Ingress); ok && !gone {
		c.shown[key] = shownStatus{o.Status.LoadBalancer.Ingress, o.DeletionTimestamp != nil}
	} else {
		delete(c.shown, key)
	}
}

// wanted returns the wanted addresses of an Ingress's status, and whether the present ones differ.
func (c *Cache) wanted(key Key) (addresses []networkingv1.IngressLoadBalancerIngress, differs bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	shown, exists := c.shown[key]
	status, ours := c.converter.Snapshot().Status(key)
	return status.Ingress, exists && ours && !shown.deleting && !sameAddresses(shown.addresses, status.Ingress)
}

// sameAddresses compares a and b as sets.
func sameAddresses(a, b []networkingv1.IngressLoadBalancerIngress) bool {
	within := func(a, b []networkingv1.IngressLoadBalancerIngress) bool {
		return !slices.ContainsFunc(a, func(x networkingv1.IngressLoadBalancerIngress) bool {
			return !slices.ContainsFunc(b, func(y networkingv1.IngressLoadBalancerIngress) bool { return sameAddress(x, y) })
		})
	}
	return within(a, b) && within(b, a)
}
