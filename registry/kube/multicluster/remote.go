// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"

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
	// what is shown; the registry that was made last, nil if none was; and the end of
	// waiting for one that has not synced.
	wanted    *kubeconfig
	status    Cluster
	latest    *kube.Controller
	interrupt context.CancelFunc
	// changed has a token when wanted is another one.
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
	r.wanted = k
	if k != nil {
		r.status.Secret = k.secret
	}
	if r.interrupt != nil && (k == nil || r.status.Registry == nil) {
		r.interrupt() // nothing is lost by not waiting for it any more
	}
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// statusLocked returns what is shown of a cluster, with what its registries say
// themselves: whether one that is late has synced since, and what the one that was
// made last cannot read.
func (r *remote) statusLocked() Cluster {
	out := r.status
	if out.State == Late && out.Registry != nil && out.Registry.HasSynced() {
		out.State = Synced
	}
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
		r.mu.Lock()
		wanted := r.wanted
		r.mu.Unlock()
		switch {
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

// keep shows the registry that there is: a kubeconfig that could not be used has
// been replaced by the one that the registry was made of.
func (r *remote) keep() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.status.State != Failed {
		return
	}
	r.status.State, r.status.Err = Late, nil // or synced, as it says itself
}

// connect makes a registry of a kubeconfig and, when it has synced, puts it in the
// place of the former one.
func (r *remote) connect(k *kubeconfig) {
	client, err := r.clientOf(r.status.ID, k)
	if err != nil {
		r.fail(k, err)
		return
	}
	ctx, interrupt := context.WithCancel(r.ctx)
	defer interrupt()
	r.mu.Lock()
	r.interrupt, r.status.State, r.status.Err = interrupt, Connecting, nil
	r.mu.Unlock()
	former := r.current
	p := guard.Call(func() {
		r.registries.Update(func(updater xdsupdate.XDSUpdater) registry.Instance {
			r.current = r.start(client, updater) //nolint:contextcheck // a registry runs until it is stopped
			r.await(ctx, r.current.registry, former != nil)
			return r.current.registry
		})
	})
	if p != nil && r.current == former { // a function of the host, before the registry ran
		r.panicked("functions of a cluster", p)
		r.fail(k, p)
		return
	}
	r.panicked("cluster", p)
	r.used = k
	r.retire(former)
	r.mu.Lock()
	r.interrupt, r.status.Registry = nil, r.current.registry
	r.mu.Unlock()
	r.pushAll()
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

// start makes a registry and runs it.
func (r *remote) start(client kubernetes.Interface, updater xdsupdate.XDSUpdater) *running {
	opts := r.options.Registry(r.status.ID)
	opts.ClusterID = r.status.ID
	out := &running{registry: kube.New(client, updater, opts), stop: make(chan struct{})}
	r.mu.Lock()
	r.latest = out.registry
	r.mu.Unlock()
	r.options.Created(out.registry)
	out.done.Go(func() { out.registry.Run(out.stop) })
	return out
}

// await returns when a registry has synced, or ctx has ended. One that replaces
// another one is waited for no longer than Options.SyncTimeout.
func (r *remote) await(ctx context.Context, k *kube.Controller, replaces bool) {
	timely, cancel := context.WithTimeout(ctx, r.options.SyncTimeout)
	defer cancel()
	if k.WaitForSync(timely) == nil {
		r.show(Synced, nil)
		return
	}
	if ctx.Err() != nil {
		return
	}
	r.options.Logger.WarnContext(ctx, "a cluster does not answer in time", slog.String("cluster", string(r.status.ID)))
	r.show(Late, nil)
	if !replaces && k.WaitForSync(ctx) == nil {
		r.show(Synced, nil)
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
