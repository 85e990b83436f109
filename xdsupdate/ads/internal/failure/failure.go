// SPDX-License-Identifier: Apache-2.0

// Package failure isolates failures and panics of the program's code: Part.Call calls one part by
// itself, and a List keeps the errors until they are reported.
package failure

import (
	"errors"
	"sync"

	"github.com/pilotkit/pilotkit/internal/guard"
)

// The parts that panics are counted by.
const (
	InGroup    = "group"
	InHost     = "host"
	InObserver = "observer"
	InProvider = "provider"
	InProxy    = "proxy"
	InPush     = "push"
	InResource = "resource"
	InServices = "services"
	InStream   = "stream"
)

// Part is code that can fail by itself.
type Part struct {
	In   string // one of few texts
	Name string // the name of the part, or "" if there is only one
}

// String names the part.
func (p Part) String() string {
	if p.Name == "" {
		return p.In
	}
	return p.In + " " + p.Name
}

// partError is an error with its part.
type partError struct {
	Part
	err error
}

// Error begins with the part.
func (e *partError) Error() string { return e.String() + ": " + e.err.Error() }

// Unwrap returns the part's error.
func (e *partError) Unwrap() error { return e.err }

// Wrap adds the part to an error, which may be nil.
func (p Part) Wrap(err error) error {
	if err == nil {
		return nil
	}
	return &partError{p, err}
}

// Call calls a function of the program. A panic becomes an error.
func (p Part) Call(f func() error) error {
	var err error
	if panicked := guard.Call(func() { err = f() }); panicked != nil {
		err = panicked
	}
	return p.Wrap(err)
}

// List has errors that wait to be reported: they are added anywhere, also under locks, and reported
// without a lock. Panics of one part are reported as one, so that a panic for each of 100,000 names
// fills neither the memory nor the log.
type List struct {
	mu     sync.Mutex
	errs   []error
	panics []Panics
	// retry means that a failure may have left work undone.
	retry bool
}

// Panics are the panics of one part.
type Panics struct {
	Part
	First error
	Stack string
	Times int
}

// Add adds an error, unless it is nil.
func (f *List) Add(err error) {
	if err == nil {
		return
	}
	var panicked *guard.PanicError
	f.mu.Lock()
	defer f.mu.Unlock()
	if !errors.As(err, &panicked) {
		f.errs = append(f.errs, err)
		return
	}
	of := Part{In: InResource}
	if from, ok := errors.AsType[*partError](err); ok {
		of = from.Part
	}
	for i := range f.panics {
		if f.panics[i].Part == of {
			f.panics[i].Times++
			return
		}
	}
	f.panics = append(f.panics, Panics{Part: of, First: err, Stack: panicked.Stack, Times: 1})
}

// Undone adds an error that may have left work undone; a later push of everything makes up for it.
func (f *List) Undone(err error) {
	if err == nil {
		return
	}
	f.Add(err)
	f.mu.Lock()
	f.retry = true
	f.mu.Unlock()
}

// Take returns the failures since the last call, and whether work may be left undone.
func (f *List) Take() (errs []error, list []Panics, retry bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	errs, list, retry = f.errs, f.panics, f.retry
	f.errs, f.panics, f.retry = nil, nil, false
	return errs, list, retry
}
