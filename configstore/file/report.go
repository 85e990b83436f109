// SPDX-License-Identifier: Apache-2.0

package file

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/pilotkit/pilotkit/internal/guard"
)

// Report is the state of a directory at one moment.
type Report struct {
	// Errors are the reasons why parts of the directory are not in the store, sorted by file and
	// place.
	Errors []*Error
	// Warnings are sorted in the same way. They are the warnings of the schema about objects in the
	// store, and probable typing errors: documents of an unknown kind or version in a group that is
	// one of the store's, or a sibling of one.
	Warnings []*Error
	// Foreign counts the documents of other kinds, such as Deployments, and
	// Other the documents that are no objects, such as a values.yaml or a
	// package.json. A directory may hold them; there is nothing to say about any
	// of them, unless it may have been an object of the store before: then it is
	// an error.
	Foreign, Other int
}

// reporter collects a Report.
type reporter struct {
	Report
	limit int
	// more counts, by file, the errors and warnings that are too many.
	more map[string]int
}

// publish makes the report, and logs new and resolved findings.
func (s *Source) publish(now time.Time) {
	r := reporter{limit: s.opts.MaxErrors, more: map[string]int{}}
	if s.rootFailure != nil {
		r.Errors = append(r.Errors, &Error{File: s.dir, Err: errors.Unwrap(s.rootFailure)})
	}
	for name, err := range s.listing.failed {
		r.Errors = append(r.Errors, &Error{File: s.path(name), Err: withoutPath(err)})
	}
	for _, c := range s.contents {
		r.content(c, s.index)
	}
	for _, e := range s.retry {
		r.Errors = append(r.Errors, e)
	}
	r.duplicates(s.index)
	if s.watcher != nil {
		r.Errors = append(r.Errors, s.watcher.failures()...)
	}
	r.Errors, r.Warnings = r.bound(r.Errors), r.bound(r.Warnings)
	for path, n := range r.more {
		r.Errors = append(r.Errors, &Error{File: path, Err: fmt.Errorf("%d more errors or warnings", n)})
	}
	slices.SortFunc(r.Errors, (*Error).compare)
	s.mu.Lock()
	before := s.report
	s.report, s.last = r.Report, s.looked(s.last, now)
	s.mu.Unlock()
	s.log(before, r.Report)
}

// content adds the errors and warnings of one file.
func (r *reporter) content(c *content, x index) {
	if c.failure != nil {
		r.Errors = append(r.Errors, c.failure)
	}
	if c.info == nil {
		return
	}
	unconfirmed := slices.ContainsFunc(c.rest.definitions, func(def *definition) bool { return def.unconfirmed })
	for _, s := range c.reported {
		r.Other += s.others
		for _, f := range s.findings {
			r.finding(s, f, unconfirmed)
		}
		for _, def := range s.definitions {
			if len(def.warnings) > 0 && x.effective(def.key) == def {
				for _, w := range def.warnings {
					r.Warnings = append(r.Warnings, s.errorAt(w.position, def.key, errors.New(w.violation.String())))
				}
			}
		}
	}
}

// finding adds a document that is not an object of the store. A finding that prevents an object
// from following the directory is an error.
func (r *reporter) finding(s *section, f *finding, unconfirmed bool) {
	switch {
	case f.class == malformed, f.retains, f.ambiguous && unconfirmed:
		r.Errors = append(r.Errors, s.errorAt(f.position, f.object, f.err))
	case f.class == mistyped:
		r.Warnings = append(r.Warnings, s.errorAt(f.position, f.object, f.err))
	case !f.ambiguous:
		r.Foreign++
	}
}

// duplicates adds the documents that lose against another one.
func (r *reporter) duplicates(x index) {
	for key := range x.duplicates {
		effective := x.effective(key)
		for _, c := range x.definitions[key] {
			if effective != nil && c != effective && !c.stale {
				r.Errors = append(r.Errors, c.error(&duplicateError{path: effective.section.file.path, at: effective.at()}))
			}
		}
	}
}

// bound sorts errors and keeps at most limit of them for each file.
func (r *reporter) bound(errs []*Error) []*Error {
	slices.SortFunc(errs, (*Error).compare)
	kept, file, n := errs[:0], "", 0
	for _, e := range errs {
		if e.File != file {
			file, n = e.File, 0
		}
		if n++; n <= r.limit {
			kept = append(kept, e)
		} else {
			r.more[file]++
		}
	}
	clear(errs[len(kept):]) // which the report would keep otherwise
	return kept
}

// log reports each error and each warning once, and once more when it is gone.
func (s *Source) log(before, after Report) {
	appeared, gone := compareErrors(before.Errors, after.Errors)
	for _, e := range appeared {
		s.opts.Logger.Warn("manifest error", attrs(e)...)
	}
	for _, e := range gone {
		s.opts.Logger.Info("manifest error gone", attrs(e)...)
	}
	appeared, gone = compareErrors(before.Warnings, after.Warnings)
	for _, e := range appeared {
		s.opts.Logger.Warn("manifest warning", attrs(e)...)
	}
	for _, e := range gone {
		s.opts.Logger.Info("manifest warning gone", attrs(e)...)
	}
}

// compareErrors returns which errors are new and which are gone. One that has only
// moved with its document is the same.
func compareErrors(before, after []*Error) (appeared, gone []*Error) {
	known := map[string]int{}
	for _, e := range before {
		known[e.subject()]++
	}
	for _, e := range after {
		if subject := e.subject(); known[subject] > 0 {
			known[subject]--
		} else {
			appeared = append(appeared, e)
		}
	}
	for _, e := range before {
		if subject := e.subject(); known[subject] > 0 {
			known[subject]--
			gone = append(gone, e)
		}
	}
	return appeared, gone
}

// attrs returns the attributes of an error in the log. Unknown ones are left out: for example, a
// directory that cannot be read has no documents.
func attrs(e *Error) []any {
	out := []any{slog.String("file", e.File)}
	if e.Document > 0 {
		out = append(out, slog.Int("document", e.Document))
	}
	if e.Line > 0 {
		out = append(out, slog.Int("line", e.Line))
	}
	if e.Object.Name != "" {
		out = append(out, slog.String("object", e.Object.Object()))
	}
	out = append(out, slog.String("error", e.Err.Error()))
	if p, ok := errors.AsType[*guard.PanicError](e.Err); ok {
		out = append(out, slog.String("stack", p.Stack))
	}
	return out
}
