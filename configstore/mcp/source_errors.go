// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/pilotkit/pilotkit/internal/guard"
)

// The cost of publishing is proportional to the changes, because other objects may have thousands
// of errors.

// note notes that the errors of an object may have changed.
func (k *sourceKind) note(o *sourceObject) {
	if o.refused == nil {
		delete(k.refused, o.name())
	} else {
		k.refused[o.name()] = o
	}
	if o.published != [2]*Error{o.err, o.refused} {
		k.changed = append(k.changed, o)
	}
}

// errorsOfLast returns the errors of the resources of the last response.
func (k *sourceKind) errorsOfLast() []*Error {
	errs := slices.Clone(k.unnamed[k.fresh:])
	for _, o := range k.judged {
		errs = append(errs, present([2]*Error{o.err, o.refused})...)
	}
	slices.SortFunc(errs, (*Error).compare)
	return errs
}

// present returns the errors that are not nil.
func present(errs [2]*Error) []*Error {
	return slices.DeleteFunc(errs[:], func(e *Error) bool { return e == nil })
}

// replacement replaces published errors by others.
type replacement struct{ before, after []*Error }

// replacements returns the changes of errors since its last call.
func (k *sourceKind) replacements() (out []replacement) {
	for _, o := range k.changed {
		now := [2]*Error{o.err, o.refused}
		if now != o.published {
			out = append(out, replacement{present(o.published), present(now)})
			o.published = now
		}
	}
	k.changed = nil
	if !slices.Equal(k.publishedUnnamed, k.unnamed) {
		out = append(out, replacement{k.publishedUnnamed, slices.Clone(k.unnamed)})
		k.publishedUnnamed = slices.Clone(k.unnamed)
	}
	return out
}

// publish updates the results of Report and Status, and logs new and resolved errors.
func (s *Source) publish() {
	var replaced []replacement
	kinds := make([]KindStatus, 0, len(s.kinds))
	current := true
	for _, k := range s.kinds {
		replaced = append(replaced, k.replacements()...)
		kinds = append(kinds, KindStatus{
			Kind: k.schema.GroupVersionKind, TypeURL: k.typeURL, Answered: k.answered, Held: k.held != nil,
			Version: k.version, Objects: k.written,
		})
		current = current && k.answered && k.held == nil
	}
	slices.SortFunc(kinds, func(a, b KindStatus) int { return strings.Compare(a.TypeURL, b.TypeURL) })
	s.mu.Lock()
	for _, r := range replaced {
		for _, e := range r.before {
			delete(s.errs, e)
		}
		for _, e := range r.after {
			s.errs[e] = struct{}{}
		}
	}
	s.ignored = s.foreign
	s.status.Kinds = kinds
	back := current && s.status.Stale()
	if current {
		s.status.StaleSince, s.status.Err, s.status.Failures = time.Time{}, nil, 0
	}
	s.mu.Unlock()
	if back {
		s.opts.Logger.Info("configs are current")
	}
	for _, r := range replaced {
		s.log(r)
	}
}

// log reports each error once, and once more when it is gone.
func (s *Source) log(r replacement) {
	was, is := texts(r.before), texts(r.after)
	for _, e := range r.after {
		if _, known := was[e.Error()]; !known {
			s.opts.Logger.Warn("config error", attrs(e)...)
		}
	}
	for _, e := range r.before {
		if _, still := is[e.Error()]; !still {
			s.opts.Logger.Info("config error gone", attrs(e)...)
		}
	}
}

func texts(errs []*Error) map[string]struct{} {
	out := make(map[string]struct{}, len(errs))
	for _, e := range errs {
		out[e.Error()] = struct{}{}
	}
	return out
}

func attrs(e *Error) []any {
	out := []any{slog.String("type_url", e.TypeURL), slog.String("error", e.Error()), slog.Bool("kept", e.Kept)}
	if p, ok := errors.AsType[*guard.PanicError](e.Err); ok {
		out = append(out, slog.String("stack", p.Stack))
	}
	return out
}
