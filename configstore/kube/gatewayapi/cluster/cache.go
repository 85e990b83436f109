// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"go.uber.org/atomic"
	"k8s.io/client-go/rest"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/kube"
	"github.com/pilotkit/pilotkit/configstore/kube/gatewayapi"
	"github.com/pilotkit/pilotkit/configstore/kube/internal/follow"
	"github.com/pilotkit/pilotkit/internal/options"
)

// defaultMaxBackoff is the default of Options.MaxBackoff.
const defaultMaxBackoff = 3 * time.Second

// Options are the options of a Cache. The zero value works.
type Options struct {
	gatewayapi.CacheOptions

	// Revision, unless empty, restricts the cache to Gateway API objects whose label istio.io/rev
	// is Revision, and to objects without that label.
	Revision string
	// Optional lists kinds that the API server may reject, named as in SourceError.Kind: a kind
	// that it forbids or does not know counts as synced, without objects, until it can be listed. A
	// Gateway API kind without a CRD is always optional. Default: none; HasSynced waits until every
	// kind may be listed.
	Optional []string
	// MaxBackoff is the maximum backoff between two attempts to reach the API server. Default, for
	// values below 1: 3 seconds.
	MaxBackoff time.Duration
}

// Cache is a gatewayapi.Cache of the objects of an API server. Create it with New.
type Cache struct {
	*gatewayapi.Cache

	objects *kube.Cache
	core    []*follow.Source
	data    *data
	ran     atomic.Bool
}

// New returns a cache of the configs for an API server's Gateway API objects. It does not connect:
// Run does. New copies config and returns an error if it is unusable. Requests are rate limited
// only if config says so.
func New(config *rest.Config, opts ...Options) (*Cache, error) {
	o := options.One("cluster.New", opts)
	o.MaxBackoff = cmp.Or(max(o.MaxBackoff, 0), defaultMaxBackoff)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	schemas := gatewayapi.Schemas()
	objects, err := kube.New(config, schemas, kube.Options{
		Logger: o.Logger, Revision: o.Revision, MaxBackoff: o.MaxBackoff, Optional: optionalKinds(schemas, o.Optional),
	})
	if err != nil {
		return nil, fmt.Errorf("cluster.New: %w", err)
	}
	client, err := follow.NewClient(config)
	if err != nil {
		return nil, fmt.Errorf("cluster.New: %w", err)
	}
	c := &Cache{objects: objects, data: newData()}
	c.core = c.newSources(client, &o)
	for _, s := range c.core {
		o.Inputs = append(o.Inputs, s)
	}
	c.Cache = gatewayapi.NewCache(objects, o.CacheOptions)
	return c, nil
}

// optionalKinds returns the Gateway API kinds whose resources are listed.
func optionalKinds(schemas configstore.Schemas, resources []string) []configstore.GroupVersionKind {
	var out []configstore.GroupVersionKind
	for _, s := range schemas.All() {
		if slices.Contains(resources, s.Plural) {
			out = append(out, s.GroupVersionKind)
		}
	}
	return out
}

// Objects returns the Gateway API objects of the API server. Writes go to the API server.
func (c *Cache) Objects() *kube.Cache { return c.objects }

// Run reads from the API server and delivers events until stop is closed. While the server cannot
// be reached, Run retries and the cache keeps its state. All goroutines that Run started have ended
// when it returns. A second call panics.
func (c *Cache) Run(stop <-chan struct{}) {
	if c.ran.Swap(true) {
		panic("cluster: Cache.Run was called twice")
	}
	ctx, cancel := context.WithCancel(context.Background()) //nolint:forbidigo // The life of Run.
	var running sync.WaitGroup
	for _, s := range c.core {
		running.Go(func() { s.Run(ctx) })
	}
	defer running.Wait()
	defer cancel()
	c.Cache.Run(stop)
}

// SourceError is the reason why a kind of objects, or an object, cannot be read at present. Its
// last good state stays.
type SourceError struct {
	// Kind is the resource, for instance "services" or "httproutes".
	Kind string
	Err  error
}

// Error returns "list services: " and the cause.
func (e SourceError) Error() string { return "list " + e.Kind + ": " + e.Err.Error() }

// Unwrap returns Err.
func (e SourceError) Unwrap() error { return e.Err }

// Errors returns the present errors: for Kubernetes kinds a SourceError, for the Gateway API the
// errors of kube.Cache.Errors, and of gatewayapi.Cache.Errors. All other problems of objects are in
// their statuses.
func (c *Cache) Errors() []error {
	var out []error
	for _, s := range c.core {
		if err := s.Err(); err != nil {
			out = append(out, SourceError{s.Kind(), err})
		}
	}
	for _, err := range c.objects.Errors() {
		out = append(out, err)
	}
	for _, err := range c.Cache.Errors() {
		out = append(out, err)
	}
	return out
}

// SourceState implements configstore.SourceStater: the state of Objects, with all Errors.
func (c *Cache) SourceState() configstore.SourceState {
	s := c.objects.SourceState()
	s.Synced = c.HasSynced()
	for _, source := range c.core {
		if err := source.Err(); err != nil {
			s.Freshness = configstore.Stale
			s.Problems = append(s.Problems, configstore.SourceProblem{Text: SourceError{source.Kind(), err}.Error()})
		}
	}
	s.Problems = append(s.Problems, c.Cache.SourceState().Problems...)
	return s
}
