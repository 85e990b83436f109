// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/internal/commit"
	"github.com/pilotkit/pilotkit/internal/excerpt"
)

var (
	// ErrDuplicate means that a response has two resources of one name, with different
	// content.
	ErrDuplicate = errors.New("the response has the object twice, with different content")
	// ErrNotOwned means that the store holds an object of the same key that this
	// source has not put there. It is left alone.
	ErrNotOwned = commit.ErrNotOwned
)

// Report lists the current differences between the server's content and the store.
type Report struct {
	// Errors are sorted by type URL, object and place.
	Errors []*Error
	// Foreign counts the responses of types that were not requested. They are ignored.
	Foreign int
}

// Error is the reason why one resource is not in the store as the server has sent it. Err matches,
// among others, configstore.ErrInvalid, ErrDuplicate or ErrNotOwned, or is the error of the store.
type Error struct {
	// TypeURL is the type URL of the response.
	TypeURL string
	// Resource is the position in the response, from 1, of a resource with an unreadable name. For
	// other resources it is 0.
	Resource int
	// Object is the object. Its Name is empty if it cannot be read.
	Object configstore.ConfigKey
	// Kept means that the store has the last good state of the object. Otherwise there
	// was none.
	Kept bool
	// Err is the cause. It is never nil.
	Err error
}

// Error returns "ServiceEntry default/db: field: reason".
func (e *Error) Error() string {
	subject := e.Object.Object()
	if e.Object.Name == "" {
		subject = e.Object.Kind.Kind + " in resource " + strconv.Itoa(e.Resource)
	}
	var invalid *configstore.ValidationError
	if errors.As(e.Err, &invalid) && invalid.Key == e.Object {
		return e.Err.Error() // begins with the object
	}
	return subject + ": " + e.Err.Error()
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

func (e *Error) compare(f *Error) int {
	if c := cmp.Or(strings.Compare(e.TypeURL, f.TypeURL), e.Object.Compare(f.Object), cmp.Compare(e.Resource, f.Resource)); c != 0 {
		return c
	}
	return strings.Compare(e.Error(), f.Error())
}

// refused reports whether the error is one of the server: its resource cannot be
// decoded, or is not valid. What only the store refuses is none.
func (e *Error) refused() bool {
	var field *fieldError
	return errors.As(e.Err, &field) || errors.Is(e.Err, configstore.ErrInvalid) || errors.Is(e.Err, ErrDuplicate)
}

// The bounds of the text of a NACK.
const (
	maxRefusals      = 20
	maxRefusalLength = 300
)

// refusalText returns the text of a NACK, which lists objects and their errors. It is empty if
// there are no errors.
func refusalText(errs []*Error) string {
	var texts []string
	refused := 0
	for _, e := range errs {
		if !e.refused() {
			continue
		}
		if refused++; refused <= maxRefusals {
			texts = append(texts, excerpt.CutTo(e.Error(), maxRefusalLength))
		}
	}
	if refused == 0 {
		return ""
	}
	out := "refused resources: " + strconv.Itoa(refused) + ": "
	if more := refused - maxRefusals; more > 0 {
		texts = append(texts, "and "+strconv.Itoa(more)+" more")
	}
	return strings.ToValidUTF8(out+strings.Join(texts, "; "), "\uFFFD")
}

// Status is the state of a Source at one moment.
type Status struct {
	// Connected means that a stream is open, Delta that it uses the delta protocol.
	Connected, Delta bool
	// Applied is the time of the last applied response, zero before the first one.
	Applied time.Time
	// StaleSince is the time since which the store may differ from the server: the start of Run, or
	// the end of the last stream, until every kind was answered on a stream. It is zero if the
	// store is current.
	StaleSince time.Time
	// Err is the reason why the last stream ended or could not be opened. Failures is the number of
	// such streams since StaleSince.
	Err      error
	Failures int
	// Kinds are sorted by type URL.
	Kinds []KindStatus
}

// KindStatus is the state of a kind at one moment.
type KindStatus struct {
	// Kind is the kind in its canonical version, TypeURL the type URL of its subscription.
	Kind    configstore.GroupVersionKind
	TypeURL string
	// Answered means that a response of this kind was applied on the open stream.
	Answered bool
	// Held means that a response that removes all objects is held back.
	Held bool
	// Version is the version of the last response that was accepted as a whole.
	Version string
	// Objects is the number of objects of the kind that the source has in the store.
	Objects int
}

// Stale reports whether the store may differ from the server.
func (s Status) Stale() bool { return !s.StaleSince.IsZero() }

// Report returns the differences between the server's content and the store. The caller may modify
// the slice, not the errors.
func (s *Source) Report() Report {
	s.mu.Lock()
	r := Report{Errors: slices.Collect(maps.Keys(s.errs)), Foreign: s.ignored}
	s.mu.Unlock()
	slices.SortFunc(r.Errors, (*Error).compare)
	return r
}

// Status returns how the source is.
func (s *Source) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	status := s.status
	status.Kinds = slices.Clone(status.Kinds)
	return status
}
