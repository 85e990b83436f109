// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/pilotkit/pilotkit/internal/excerpt"
	"github.com/pilotkit/pilotkit/internal/guard"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/memory"
)

// Status is a snapshot of the state of a bridge.
type Status struct {
	// Listed is the time of the last accepted list; zero if there was none.
	Listed time.Time
	// StaleSince is the time of the first failed attempt to list or to watch, or of the first list
	// that was held back, since Listed. It is zero if the registry is not known to differ from the
	// catalogue.
	StaleSince time.Time
	// Err is the last error since Listed, or nil.
	Err error
	// Failures is the number of errors since Listed.
	Failures int
	// Defects are the defects of the records of the last accepted list, sorted by service. The
	// slice is shared and read-only.
	Defects []*RecordError
}

// Stale reports whether the registry may have content that the catalogue does not have any more.
func (s Status) Stale() bool { return !s.StaleSince.IsZero() }

// RecordError is the reason why a record of a list is not used.
type RecordError struct {
	// Hostname and Namespace identify the service, as far as the record has them.
	Hostname  registry.Hostname
	Namespace string
	// Field is the path of the invalid field, as in memory.InvalidError; empty if Err does not name
	// it.
	Field string
	// Kept means that the registry keeps the last good state of the service; otherwise there was
	// none.
	Kept bool
	// Err is the defect: Record.Err, a *memory.InvalidError, or another error.
	Err error
}

func newRecordError(k key, err error) *RecordError {
	d := &RecordError{Hostname: k.hostname, Namespace: k.namespace, Err: err}
	if invalid := (*memory.InvalidError)(nil); errors.As(err, &invalid) {
		d.Field = invalid.Field
	}
	return d
}

// Error returns the defect and the service.
func (d *RecordError) Error() string {
	if invalid := (*memory.InvalidError)(nil); errors.As(d.Err, &invalid) {
		return d.Err.Error() // it names the service itself
	}
	return fmt.Sprintf("%s: %v", excerpt.Object("service", d.Namespace, string(d.Hostname)), d.Err)
}

// Unwrap returns Err.
func (d *RecordError) Unwrap() error { return d.Err }

func (d *RecordError) compare(e *RecordError) int {
	if c := strings.Compare(string(d.Hostname), string(e.Hostname)); c != 0 {
		return c
	}
	return strings.Compare(d.Namespace, e.Namespace)
}

// Status returns the state of the bridge.
func (b *Bridge) Status() Status {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.status
}

// stale records an error, and logs the first one of its kind.
func (b *Bridge) stale(err error) {
	b.mu.Lock()
	last := b.status.Err
	b.status.Err = err
	b.status.Failures++
	if b.status.StaleSince.IsZero() {
		b.status.StaleSince = time.Now()
	}
	b.mu.Unlock()
	if last == nil && !b.unwatched || last != nil && errors.Is(last, ErrHeld) != errors.Is(err, ErrHeld) {
		b.logger.Warn("catalogue is stale", slog.Any("error", err))
	}
}

// watched records the result of an attempt to watch.
func (b *Bridge) watched(err error) {
	if err != nil {
		b.fail(err)
		b.unwatched = true
	} else if b.unwatched {
		b.unwatched = false
		b.logger.Info("catalogue is current again")
	}
}

// current records an accepted list.
func (b *Bridge) current(defects []*RecordError) {
	b.mu.Lock()
	last := b.status
	b.status = Status{Listed: time.Now(), Defects: defects}
	b.mu.Unlock()
	if last.Stale() && !b.unwatched {
		b.logger.Info("catalogue is current again")
	}
	before, after := texts(last.Defects), texts(defects)
	for _, d := range defects {
		if _, known := before[d.Error()]; !known {
			b.logger.Warn("record has a defect", slog.Any("error", d), slog.Bool("kept", d.Kept))
		}
	}
	for _, d := range last.Defects {
		if _, still := after[d.Error()]; !still {
			b.logger.Info("defect is gone", slog.Any("error", d))
		}
	}
}

func texts(defects []*RecordError) map[string]struct{} {
	out := make(map[string]struct{}, len(defects))
	for _, d := range defects {
		out[d.Error()] = struct{}{}
	}
	return out
}

func (b *Bridge) logPanic(p *guard.PanicError) { p.Log(b.logger, "catalogue") }
