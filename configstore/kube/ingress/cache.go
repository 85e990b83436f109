// SPDX-License-Identifier: Apache-2.0

package ingress

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"go.uber.org/atomic"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/internal/derived"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/kube/internal/follow"
	"github.com/pilotkit/pilotkit/internal/options"
)

// CacheOptions are the options of a Cache. The zero value works.
type CacheOptions struct {
	Options
	// Mesh is what the configuration of the mesh says at first; Cache.UpdateMesh replaces it.
	// Default, nil: DefaultMesh.
	Mesh *Mesh
	// Optional are kinds of objects that the API server may refuse, as SourceError.Kind names
	// them: one that it forbids, or does not know, counts as listed, without objects, until it
	// gives them. Pods and nodes are needed only for statuses without Mesh.Service. Default:
	// none; HasSynced waits until everything may be read.
	Optional []string
	// MaxBackoff is the longest time between two attempts to reach the API server; the first
	// follow faster, and each is late by up to half of its time, by chance. Default, for values
	// below 1: 5 seconds.
	MaxBackoff time.Duration
	// Logger gets each error once, when it appears. Default: nil, which discards.
	Logger *slog.Logger
}

// defaultMaxBackoff is the default of CacheOptions.MaxBackoff.
const defaultMaxBackoff = 5 * time.Second

// readOnly shows what is published.
type readOnly = derived.Cache

// Cache is a ConfigStoreCache of what a Converter makes of the Ingresses of an API server.
// It takes no writes (ErrReadOnly); put it beside others with aggregate.MakeCache. Create it with New.
//
// It is empty until all kinds have been read once, and then has everything at once. What
// the API server does not give any more stays as it was, and Errors says so.
type Cache struct {
	readOnly
	opts      CacheOptions
	client    kubernetes.Interface
	published *derived.Published
	sources   []*follow.Source
	followed  atomic.Bool

	mu        sync.Mutex
	converter *Converter
	// ready: what the converter has is published.
	ready bool
	// shown are the statuses of the Ingresses.
	shown map[Key]shownStatus
	// changed are the Ingresses whose own status has come since the last batch.
	changed []Key
	// look is called with Ingresses whose status may not be what it should.
	look func(...Key)
}

// shownStatus is the status that an Ingress has.
type shownStatus struct {
	addresses []networkingv1.IngressLoadBalancerIngress
	deleting  bool
}

// New returns the cache of an API server's Ingresses. It connects to nothing yet: Run does.
// The error is that of an unusable config, which New copies. Requests are limited only if
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
	if o.Mesh != nil {
		c.converter.Apply(SetMesh(*o.Mesh))
	}
	c.published = derived.Publisher(istio.Schemas(), []configstore.GroupVersionKind{istio.Gateway, istio.VirtualService}, c.listed, o.Logger)
	c.readOnly = derived.Of(c.published)
	c.sources = c.newSources(client)
	return c
}

// Snapshot returns what the converter has made of what was read so far, also before the
// cache has synced.
func (c *Cache) Snapshot() *Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.converter.Snapshot()
}

// UpdateMesh replaces what the configuration of the mesh says.
func (c *Cache) UpdateMesh(m Mesh) { c.apply(SetMesh(m)) }

// Run reads from the API server and delivers events, until stop is closed. While the server
// cannot be reached it goes on trying, and the state stays. When it returns, all that it
// started has ended. A second call panics.
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
	c.published.Run(stop)
}

// SourceError says why a kind of objects cannot be read at present, or a config not be published. What was read or
// published of it before stays.
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

// Errors returns the kinds of objects that cannot be read at present, because the API server
// is not reached or refuses, and configs that cannot be published; none if all is well. What is wrong with Ingresses is
// in Snapshot.
func (c *Cache) Errors() []SourceError {
	var out []SourceError
	for _, s := range c.sources {
		if err := s.Err(); err != nil {
			out = append(out, SourceError{Kind: s.Kind(), Err: err})
		}
	}
	for _, r := range c.published.Refused() {
		out = append(out, SourceError{Config: r.Object, Err: r.Err})
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

func (c *Cache) listed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ready
}

// apply converts changes and publishes what comes of them, as one batch; at first all, when
// everything has been read.
func (c *Cache) apply(changes ...Change) {
	c.mu.Lock()
	update := c.converter.Apply(changes...)
	look, keys := c.look, slices.Concat(update.Statuses, c.changed)
	c.changed = nil
	switch {
	case c.ready:
		c.published.Publish(derived.Mutations(update.Changes))
	case !slices.ContainsFunc(c.sources, func(s *follow.Source) bool { return !s.HasSynced() }):
		var all []configstore.Change
		for _, kind := range []configstore.GroupVersionKind{istio.Gateway, istio.VirtualService} {
			for _, config := range update.After.Configs(kind) {
				all = append(all, configstore.Change{Event: configstore.EventAdd, Curr: config})
			}
		}
		c.published.Publish(derived.Mutations(all))
		c.ready = true
	}
	c.mu.Unlock()
	if look != nil {
		look(keys...)
	}
}

// show notes the status that an Ingress has.
func (c *Cache) show(object metav1.Object, gone bool) {
	key := Key{object.GetNamespace(), object.GetName()}
	c.changed = append(c.changed, key)
	if o, ok := object.(*networkingv1.Ingress); ok && !gone {
		c.shown[key] = shownStatus{o.Status.LoadBalancer.Ingress, o.DeletionTimestamp != nil}
	} else {
		delete(c.shown, key)
	}
}

// wanted returns the addresses that the status of an Ingress should have, if it has others.
func (c *Cache) wanted(key Key) (addresses []networkingv1.IngressLoadBalancerIngress, differs bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	shown, exists := c.shown[key]
	status, ours := c.converter.Snapshot().Status(key)
	return status.Ingress, exists && ours && !shown.deleting && !sameAddresses(shown.addresses, status.Ingress)
}

// sameAddresses compares two sets.
func sameAddresses(a, b []networkingv1.IngressLoadBalancerIngress) bool {
	within := func(a, b []networkingv1.IngressLoadBalancerIngress) bool {
		return !slices.ContainsFunc(a, func(x networkingv1.IngressLoadBalancerIngress) bool {
			return !slices.ContainsFunc(b, func(y networkingv1.IngressLoadBalancerIngress) bool { return sameAddress(x, y) })
		})
	}
	return within(a, b) && within(b, a)
}
