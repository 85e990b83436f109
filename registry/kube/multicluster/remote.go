// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/guard"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/kube"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// kubeconfig is the entry of a cluster in a Secret.
type kubeconfig struct{ secret, data string }

// remote is a cluster. A goroutine of its own reconciles it with the Secrets, one step after the
// other, so that a slow cluster does not delay others.
type remote struct {
	*Controller
	// The Controller's lock guards these fields: wanted is the entry in the Secrets, nil if the
	// cluster has to be removed; status is the reported status; latest is the newest registry, nil
	// if there was none.
	wanted *kubeconfig
	status Cluster
	latest *kube.Controller
	// changed holds a token if wanted may have changed since the goroutine last read it.
	changed chan struct{}

	// Only the goroutine of the cluster uses these fields: the registry in the aggregate, with the
	// means to end it, and its kubeconfig.
	current *running
	used    *kubeconfig
}

type running struct {
	registry *kube.Controller
	stop     chan struct{}
	done     sync.WaitGroup
}

func (r *running) end() {
	close(r.stop)
	r.done.Wait()
}

// wantLocked sets the wanted kubeconfig of a cluster, and starts its reconciliation.
func (c *Controller) wantLocked(id registry.ClusterID, k *kubeconfig) {
	r := c.clusters[id]
	if r == nil {
		r = &remote{Controller: c, changed: make(chan struct{}, 1)}
		c.clusters[id] = r
		r.status = Cluster{ID: id, State: Connecting}
		c.group.Go(r.work)
	} else if k != nil && r.wanted != nil && *k == *r.wanted {
		return
	}
	if k != nil {
		r.status.Secret = k.secret
		if r.wanted == nil || k.data != r.wanted.data {
			r.status.State, r.status.Err = Connecting, nil
		}
	}
	r.wanted = k
	r.signal()
}

// signal makes the goroutine of the cluster read the wanted kubeconfig.
func (r *remote) signal() {
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// want returns the wanted kubeconfig.
func (r *remote) want() *kubeconfig {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.wanted
}

// statusLocked returns the reported status of a cluster, with the errors of the newest registry.
func (r *remote) statusLocked() Cluster {
	out := r.status
	if out.State != Failed && r.latest != nil {
		var errs []error
		for _, err := range r.latest.Errors() {
			errs = append(errs, err)
		}
		out.Err = errors.Join(errs...)
	}
	return out
}

// work reconciles the cluster until it is removed or Run ends.
func (r *remote) work() {
	defer func() {
		if r.current != nil {
			r.current.end()
		}
	}()
	for {
		select {
		case <-r.ctx.Done():
			return
		case <-r.changed:
		}
		switch wanted := r.want(); {
		case wanted == nil:
			if r.remove() {
				return
			}
		case r.used == nil || wanted.data != r.used.data:
			r.connect(wanted)
		default:
			r.keep()
		}
	}
}

// remove removes the cluster from the aggregate, and reports whether it is removed for good.
func (r *remote) remove() bool {
	if r.current != nil {
		r.registries.DeleteRegistryIfCurrent(r.current.registry)
		r.retire(r.current)
		r.current, r.used = nil, nil
		r.pushAll()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status.Registry, r.latest = nil, nil
	if r.wanted != nil {
		r.status.State = Connecting // a Secret has the cluster again
		return false
	}
	delete(r.clusters, r.status.ID)
	return true
}

// keep reports the existing registry again, because its replacement is not wanted any more.
func (r *remote) keep() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.latest, r.status.State, r.status.Err = r.current.registry, Synced, nil
}

// connect creates a registry from a kubeconfig. It replaces the former one when it has read every
// kind of objects that the former one has read. Until then the former one stays as it is, and the
// new one reports to no updater.
func (r *remote) connect(k *kubeconfig) {
	client, err := r.clientOf(r.status.ID, k)
	if err != nil {
		r.fail(k, err)
		return
	}
	var next *running
	if p := guard.Call(func() { next = r.start(client) }); p != nil {
		r.panicked("functions of a cluster", p)
		r.fail(k, p)
		return
	}
	if !r.await(next.registry, k) {
		r.abandon(next)
		return
	}
	if p := guard.Call(func() { r.options.Created(next.registry) }); p != nil {
		r.abandon(next)
		r.panicked("functions of a cluster", p)
		r.fail(k, p)
		return
	}
	r.install(next, k)
}

// install makes a synced registry the one of the cluster.
func (r *remote) install(next *running, k *kubeconfig) {
	r.panicked("cluster", guard.Call(func() {
		r.registries.UpdateRegistry(func(updater xdsupdate.XDSUpdater) registry.Instance {
			if err := next.registry.ReportTo(context.WithoutCancel(r.ctx), updater); err != nil {
				r.options.Logger.ErrorContext(r.ctx, "a registry does not report", slog.String("cluster", string(r.status.ID)), slog.Any("error", err))
			}
			return next.registry
		})
	}))
	former := r.current
	r.current, r.used = next, k
	r.mu.Lock()
	r.status.Registry, r.status.Since = next.registry, time.Now()
	r.status.State, r.status.Err = Synced, nil
	r.mu.Unlock()
	r.retire(former)
	r.pushAll()
}

// abandon ends a registry that will not become part of the aggregate.
func (r *remote) abandon(next *running) {
	next.end()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.latest = r.status.Registry
}

// fail reports that a kubeconfig cannot be used. The existing registry stays.
func (r *remote) fail(k *kubeconfig, err error) {
	r.show(Failed, err)
	r.options.Logger.WarnContext(r.ctx, "a cluster cannot be used", slog.String("cluster", string(r.status.ID)),
		slog.String("secret", k.secret), slog.Any("error", err))
}

// panicked logs a panic. It does nothing for nil.
func (r *remote) panicked(what string, p *guard.PanicError) {
	if p != nil {
		p.Log(r.options.Logger, what, slog.String("cluster", string(r.status.ID)))
	}
}

// retire ends a registry that was removed from the aggregate. The registry itself notifies the
// receivers of its workloads of their removal, and does not notify any more after it has ended.
// Therefore retire handles its queue first, even if everything stops.
func (r *remote) retire(former *running) {
	if former == nil {
		return
	}
	if err := former.registry.Flush(context.WithoutCancel(r.ctx)); err != nil {
		r.options.Logger.DebugContext(r.ctx, "a registry was ended early", slog.Any("error", err))
	}
	former.end()
}

// start creates a registry and runs it. All kinds that the former one could read are required.
func (r *remote) start(client kubernetes.Interface) *running {
	opts := r.options.Registry(r.status.ID)
	opts.ClusterID = r.status.ID
	if r.current != nil {
		had := r.current.registry.Listed()
		opts.Optional = slices.DeleteFunc(slices.Clone(opts.Optional), func(kind string) bool { return slices.Contains(had, kind) })
	}
	out := &running{registry: kube.New(client, xdsupdate.Discard{}, opts), stop: make(chan struct{})}
	r.mu.Lock()
	r.latest, r.status.State, r.status.Err = out.registry, Connecting, nil
	r.mu.Unlock()
	out.done.Go(func() { out.registry.Run(out.stop) })
	return out
}

// await returns true when a registry has synced. It returns false if its kubeconfig is not wanted
// any more, or if Run ends.
func (r *remote) await(k *kube.Controller, of *kubeconfig) bool {
	ctx, cancel := context.WithCancel(r.ctx)
	var waiting sync.WaitGroup
	defer waiting.Wait()
	defer cancel()
	synced := make(chan bool, 1)
	waiting.Go(func() { synced <- configstore.WaitForSync(ctx, k) == nil })
	late := time.NewTimer(r.options.SyncTimeout)
	defer late.Stop()
	state := Connecting
	for {
		select {
		case ok := <-synced:
			return ok
		case <-r.changed:
			if now := r.want(); now == nil || now.data != of.data {
				r.signal()
				return false
			}
			r.show(state, nil) // the wanted kubeconfig is the same
		case <-late.C:
			r.options.Logger.WarnContext(ctx, "a cluster does not answer in time", slog.String("cluster", string(r.status.ID)))
			state = Late
			r.show(state, nil)
		}
	}
}

func (r *remote) show(s State, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status.State, r.status.Err = s, err
}

// pushAll requests a full push to all proxies.
func (r *remote) pushAll() {
	r.panicked("updater", guard.Call(func() {
		r.options.Updater.ConfigUpdate(&xdsupdate.PushRequest{
			Full: true, Forced: true, Start: time.Now(),
			Reason: map[xdsupdate.TriggerReason]int{xdsupdate.ReasonCluster: 1},
		})
	}))
}
