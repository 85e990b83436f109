// SPDX-License-Identifier: Apache-2.0

package debug

import (
	"log/slog"
	"time"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/guard"
)

// sourceRow is a source in the list of sources.
type sourceRow struct {
	Name       string    `json:"name"`
	Synced     bool      `json:"synced"`
	Stale      bool      `json:"stale"`
	StaleSince time.Time `json:"stale_since,omitzero"`
	Content    time.Time `json:"content,omitzero"`
	Error      string    `json:"error,omitempty"`
	Errors     int       `json:"errors"`
	Warnings   int       `json:"warnings"`

	problems []configstore.SourceProblem
}

// problemRow is a problem of a source.
type problemRow struct {
	Source  string  `json:"source"`
	Warning bool    `json:"warning,omitempty"`
	Object  *object `json:"object,omitempty"`
	Text    string  `json:"text"`
	// Stored reports whether the object can have a page.
	Stored bool `json:"-"`
}

// sourceRows reads the state of all sources.
func (h *handler) sourceRows() []sourceRow {
	out := make([]sourceRow, 0, len(h.Sources))
	for _, source := range h.Sources {
		row := sourceRow{Name: source.Name}
		if panicked := guard.Call(func() { row.ask(source) }); panicked != nil {
			panicked.Log(h.Logger, "debug source", slog.String("source", source.Name))
			row = sourceRow{Name: source.Name, Error: panicked.Error(), Errors: 1}
		}
		out = append(out, row)
	}
	return out
}

func (r *sourceRow) ask(source configstore.Source) {
	s := source.State()
	r.Synced, r.Stale, r.StaleSince, r.Content, r.problems = s.Synced, s.Freshness == configstore.Stale, s.StaleSince, s.Content, s.Problems
	if s.Err != nil {
		r.Error = redactText(s.Err.Error())
	}
	r.Errors, r.Warnings = s.Count()
}

// problemRowOf returns a problem as a row.
func (h *handler) problemRowOf(source string, p configstore.SourceProblem) problemRow {
	out := problemRow{Source: source, Warning: p.Warning, Text: redactText(p.Text)}
	if p.Object != (configstore.ConfigKey{}) {
		o := objectOf(p.Object)
		out.Object, out.Stored = &o, h.hasKind(p.Object.Kind)
	}
	return out
}

// problemsOf returns the problems that sources report for an object.
func (h *handler) problemsOf(key configstore.ConfigKey) (out []problemRow) {
	for _, source := range h.sourceRows() {
		for _, p := range source.problems {
			if p.Object.Name == key.Name && p.Object.Namespace == key.Namespace && p.Object.Kind == key.Kind {
				out = append(out, h.problemRowOf(source.Name, p))
			}
		}
	}
	return out
}

// sourcesPage is the content of the page of sources: the sources, and the problems of all sources
// or of one.
type sourcesPage struct {
	Sources  []sourceRow      `json:"sources"`
	Problems list[problemRow] `json:"problems"`
}

func (h *handler) sources(q *query) (any, error) {
	out := sourcesPage{Sources: h.sourceRows()}
	type found struct {
		source string
		configstore.SourceProblem
	}
	var all []found
	for _, s := range out.Sources {
		if name := q.text("source"); name != "" && name != s.Name {
			continue
		}
		for _, p := range s.problems {
			all = append(all, found{s.Name, p})
		}
	}
	var err error
	out.Problems, err = listOf(q, all, func(f found) bool { return contains(q.text("q"), f.Text) },
		func(f found) problemRow { return h.problemRowOf(f.source, f.SourceProblem) })
	return out, err
}
