// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"
)

// part is a component that runs.
type part struct {
	name string
	// run returns when stop was closed, or before that if it has failed.
	run func(stop <-chan struct{}) error
}

// runs is a part that cannot fail.
func runs(name string, run func(stop <-chan struct{})) part {
	return part{name, func(stop <-chan struct{}) error {
		run(stop)
		return nil
	}}
}

// lifecycle starts parts in the direction of the data, and stops them in the other one:
// nothing stops while something runs that reads it.
type lifecycle struct {
	log      *slog.Logger
	patience time.Duration
	running  []*running
	// failed gets the error of a part that has ended by itself.
	failed chan error
}

// running is a part that was started.
type running struct {
	part
	stop  chan struct{}
	ended chan error // of capacity 1
}

func newLifecycle(log *slog.Logger, patience time.Duration) *lifecycle {
	return &lifecycle{log: log, patience: patience, failed: make(chan error, 1)}
}

// start starts parts, one after the other.
func (l *lifecycle) start(parts ...part) {
	for _, p := range parts {
		r := &running{p, make(chan struct{}), make(chan error, 1)}
		l.running = append(l.running, r)
		go func() {
			err := r.run(r.stop)
			r.ended <- err
			select {
			case <-r.stop:
				return // it was to end
			default:
			}
			select {
			case l.failed <- fmt.Errorf("%s has ended: %w", r.name, errors.Join(err, errEnded)):
			default: // another part has failed before
			}
		}()
	}
}

// errEnded is why the program stops if a part ends that was not stopped.
var errEnded = errors.New("it was not stopped")

// stop stops what was started, the last first. Each part has so much patience to end;
// the error names those that did not, or failed in it.
func (l *lifecycle) stop() error {
	var errs []error
	for _, r := range slices.Backward(l.running) {
		close(r.stop)
		timer := time.NewTimer(l.patience)
		select {
		case err := <-r.ended:
			if err != nil {
				errs = append(errs, fmt.Errorf("stop %s: %w", r.name, err))
			}
		case <-timer.C:
			errs = append(errs, fmt.Errorf("stop %s: it has not ended within %v", r.name, l.patience))
		}
		timer.Stop()
		l.log.Info("stopped", slog.String("part", r.name))
	}
	l.running = nil
	return errors.Join(errs...)
}
