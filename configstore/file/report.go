// SPDX-License-Identifier: Apache-2.0

package file

import (
	"errors"
	"log/slog"
	"slices"

	"github.com/pilotkit/pilotkit/configstore"
)

// publish makes the list of errors and logs what is new on it and what is gone.
func (s *Source) publish() {
	var errs []*Error
	if s.rootFailure != nil {
		errs = append(errs, &Error{File: s.dir, Err: errors.Unwrap(s.rootFailure)})
	}
	for name, err := range s.listing.failed {
		errs = append(errs, &Error{File: s.path(name), Err: withoutPath(err)})
	}
	for _, c := range s.contents {
		errs = append(errs, c.errs...)
		if c.failure != nil {
			errs = append(errs, c.failure)
		}
		for _, cl := range c.claims {
			if c.refused && cl.refused != nil {
				errs = append(errs, cl.refused)
			}
		}
	}
	for _, e := range s.retry {
		errs = append(errs, e)
	}
	errs = append(errs, s.index.duplicates()...)
	if s.watcher != nil {
		errs = append(errs, s.watcher.failures()...)
	}
	slices.SortFunc(errs, (*Error).compare)
	s.mu.Lock()
	before := s.errors
	s.errors = errs
	s.mu.Unlock()
	s.log(before, errs)
}

// log reports each error once, and once more when it is gone. Both lists are
// sorted.
func (s *Source) log(before, after []*Error) {
	for len(before) > 0 || len(after) > 0 {
		switch {
		case len(after) == 0 || len(before) > 0 && before[0].compare(after[0]) < 0:
			s.opts.Logger.Info("manifest error gone", attrs(before[0])...)
			before = before[1:]
		case len(before) == 0 || before[0].compare(after[0]) > 0:
			if errors.Is(after[0], configstore.ErrUnknownKind) {
				// Directories are shared with other programs.
				s.opts.Logger.Info("manifest of an unknown kind", attrs(after[0])...)
			} else {
				s.opts.Logger.Warn("manifest error", attrs(after[0])...)
			}
			after = after[1:]
		default:
			before, after = before[1:], after[1:]
		}
	}
}

func attrs(e *Error) []any {
	object := ""
	if e.Object != (configstore.ConfigKey{}) {
		object = e.Object.String()
	}
	return []any{
		slog.String("file", e.File),
		slog.Int("document", e.Document),
		slog.Int("line", e.Line),
		slog.String("object", object),
		slog.String("error", e.Err.Error()),
	}
}
