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

// kubeconfig is what a Secret says of a cluster.
type kubeconfig struct{ secret, data string }

// remote is a cluster. A goroutine of its own makes it what is wanted, one step
// after the other, so that a slow cluster delays no other one.
type remote struct {
	*Controller
	// Under the Controller's lock: what the Secrets say, nil if the cluster is to go;
	// what is shown; and the registry that was made last, nil if none was.
	wanted *kubeconfig
	status Cluster
	latest *kube.Controller
	// changed has a token when wanted may be another one than the goroutine knows.
	changed chan struct{}

	// Only the goroutine of the cluster uses these: the registry that is part of the
	// aggregate, how to end it, and what it was made of.
	current *running
	used    *kubeconfig
}

// running is a registry that runs.
type running struct {
	registry *kube.Controller
	stop     chan struct{}
	done     sync.WaitGroup
}

func (r *running) end() {
	close(r.stop)
	r.done.Wait()
}

// wantLocked notes what a cluster should be, and starts to make it so.
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

// signal has the goroutine of the cluster look at what is wanted.
func (r *remote) signal() {
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// want returns what is wanted.
func (r *remote) want() *kubeconfig {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.wanted
}

// statusLocked returns what is shown of a cluster, with what the registry that was
// made last cannot read.
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

// work makes the cluster what is wanted, until it is gone or Run ends.
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

// remove takes the cluster out of the aggregate, and reports whether it is gone for
// good.
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
		r.status.State = Connecting // it has returned meanwhile
		return false
	}
	delete(r.clusters, r.status.ID)
	return true
}

// keep shows the registry that there is: what was to replace it is not wanted any
// more.
func (r *remote) keep() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.latest, r.status.State, r.status.Err = r.current.registry, Synced, nil
}

// connect makes a registry of a kubeconfig and, when it can answer for everything
// that the former one has answered for, puts it in its place. Until then the former
// one stays as it is: the new one reports to nobody.
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

// install makes a registry that has synced the one of the cluster.
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

// abandon ends a registry that is not going to be part of the aggregate.
func (r *remote) abandon(next *running) {
	next.end()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.latest = r.status.Registry
}

// fail shows that a kubeconfig cannot be used. What there was before stays.
func (r *remote) fail(k *kubeconfig, err error) {
	r.show(Failed, err)
	r.options.Logger.WarnContext(r.ctx, "a cluster cannot be used", slog.String("cluster", string(r.status.ID)),
		slog.String("secret", k.secret), slog.Any("error", err))
}

// panicked logs a panic; nil is none.
func (r *remote) panicked(what string, p *guard.PanicError) {
	if p != nil {
		p.Log(r.options.Logger, what, slog.String("cluster", string(r.status.ID)))
	}
}

// retire ends a registry that is not part of the aggregate any more. Those who took
// its workloads are notified by the registry itself that they are gone, and one
// that has ended notifies nobody: so it ends when it has handled what is queued,
// also if everything stops.
func (r *remote) retire(former *running) {
	if former == nil {
		return
	}
	if err := former.registry.Flush(context.WithoutCancel(r.ctx)); err != nil {
		r.options.Logger.DebugContext(r.ctx, "a registry was ended early", slog.Any("error", err))
	}
	former.end()
}

// start makes a registry and runs it. What the former one could read has to be read by
// this one as well.
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

// await returns true when a registry has synced, and false when something else than
// its kubeconfig is wanted, or Run ends.
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
			r.show(state, nil) // the same kubeconfig again
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

// pushAll asks for a push of everything to everybody.
func (r *remote) pushAll() {
	r.panicked("updater", guard.Call(func() {
		r.options.Updater.ConfigUpdate(&xdsupdate.PushRequest{
			Full: true, Forced: true, Start: time.Now(),
			Reason: map[xdsupdate.TriggerReason]int{xdsupdate.ReasonCluster: 1},
		})
	}))
}
