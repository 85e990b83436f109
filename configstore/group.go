// SPDX-License-Identifier: Apache-2.0

package configstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"
)

// Part is a component that a Group runs: a source, a cache, a registry, a server.
type Part struct {
	// Name is the name of the part in errors and logs. Required.
	Name string
	// Run runs the part until stop is closed. A return before that ends the Group. Required.
	Run func(stop <-chan struct{}) error
	// Syncer has an initial state to reach. Default: a part has synced when it is started.
	Syncer Syncer
	// AfterSync starts the part when all parts before it have synced. Set it for what serves
	// others: a listener, an elected writer. Default: the part starts at once, because sources,
	// caches and registries sync only while all of them run.
	AfterSync bool
}

// Runs returns a part whose Run cannot fail. A nil syncer means that the part has synced when it is
// started: give a source whose cache waits for it, or can do without it, no Syncer of its own.
func Runs(name string, run func(stop <-chan struct{}), syncer Syncer) Part {
	return Part{Name: name, Syncer: syncer, Run: func(stop <-chan struct{}) error {
		run(stop)
		return nil
	}}
}

// Group runs the parts of a program in the order of the data: sources, caches, registries, then
// the parts that serve others. It stops them in reverse, so that no part ends while another one
// reads from it. The zero value with Parts is ready; a Group is run once.
//
//	err := (&configstore.Group{Parts: []configstore.Part{
//		configstore.Runs("files", files.Run, nil), configstore.Runs("configs", configs.Run, configs),
//		configstore.Runs("registries", registries.Run, registries),
//		{Name: "xds", AfterSync: true, Run: serve},
//	}}).Run(ctx)
type Group struct {
	Parts []Part
	// Logger gets a warning that names the parts that have not synced, every ten seconds until they
	// have. Default: nothing is logged.
	Logger *slog.Logger
	// Patience is how long each part may take to end. Default: 10 s.
	Patience time.Duration
}

const (
	defaultPatience = 10 * time.Second
	syncReminder    = 10 * time.Second
)

// running is a part that was started.
type running struct {
	Part
	stop  chan struct{}
	ended chan error // of capacity 1
}

// Run starts the parts, and returns when ctx has ended and all parts have ended. If a part ends
// before that, Run stops the others and returns an error that names the part. Otherwise the
// error is that of the parts that failed, or did not end, when they were stopped; nil if none did.
func (g *Group) Run(ctx context.Context) error {
	failed := make(chan error, len(g.Parts))
	var started []*running
	err := g.start(ctx, &started, failed)
	if err == nil {
		select {
		case err = <-failed:
		case <-ctx.Done():
		}
	}
	return errors.Join(err, g.stop(started))
}

// start starts the parts. It returns nil if ctx ends meanwhile.
func (g *Group) start(ctx context.Context, started *[]*running, failed chan error) error {
	for i, p := range g.Parts {
		if p.Name == "" || p.Run == nil {
			return fmt.Errorf("configstore.Group: part %d (%q) has no Name or no Run", i, p.Name)
		}
		if p.AfterSync {
			if err := g.await(ctx, g.Parts[:i], failed); err != nil || ctx.Err() != nil {
				return err
			}
		}
		r := &running{p, make(chan struct{}), make(chan error, 1)}
		*started = append(*started, r)
		go r.run(failed)
	}
	return g.await(ctx, g.Parts, failed)
}

func (r *running) run(failed chan<- error) {
	err := r.Run(r.stop)
	select {
	case <-r.stop:
	default:
		failed <- fmt.Errorf("%s has ended: %w", r.Name, errors.Join(err, ErrPartEnded))
		err = nil // it has been said
	}
	r.ended <- err
}

// ErrPartEnded is in the error of Group.Run if a part ended that was not stopped.
var ErrPartEnded = errors.New("the part was not stopped")

// await returns nil when the parts have synced or ctx has ended.
func (g *Group) await(ctx context.Context, parts []Part, failed <-chan error) error {
	var syncers []Syncer
	for _, p := range parts {
		if p.Syncer != nil {
			syncers = append(syncers, p.Syncer)
		}
	}
	waiting, cancel := context.WithCancel(ctx)
	synced := make(chan struct{})
	go func() {
		defer close(synced)
		_ = WaitForSync(waiting, syncers...) // an error means that ctx has ended
	}()
	defer func() {
		cancel()
		<-synced
	}()
	reminder := time.NewTicker(syncReminder)
	defer reminder.Stop()
	for {
		select {
		case err := <-failed:
			return err
		case <-synced:
			return nil
		case <-reminder.C:
			if g.Logger != nil {
				g.Logger.Warn("waiting for sync", slog.Any("parts", unsynced(parts)))
			}
		}
	}
}

// unsynced describes the parts that have not synced.
func unsynced(parts []Part) (pending []string) {
	for _, p := range parts {
		if p.Syncer != nil && !p.Syncer.HasSynced() {
			pending = append(pending, pendingAs(p.Name, p.Syncer))
		}
	}
	return pending
}

// stop stops the parts, the last first.
func (g *Group) stop(parts []*running) error {
	patience := g.Patience
	if patience <= 0 {
		patience = defaultPatience
	}
	var errs []error
	for _, r := range slices.Backward(parts) {
		close(r.stop)
		timer := time.NewTimer(patience)
		select {
		case err := <-r.ended:
			if err != nil {
				errs = append(errs, fmt.Errorf("stop %s: %w", r.Name, err))
			}
		case <-timer.C:
			errs = append(errs, fmt.Errorf("stop %s: the part has not ended within %v", r.Name, patience))
		}
		timer.Stop()
	}
	return errors.Join(errs...)
}
