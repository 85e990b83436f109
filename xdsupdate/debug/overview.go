// SPDX-License-Identifier: Apache-2.0

package debug

import (
	"fmt"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/registry"
)

// overviewPage is the first page: what wants attention, and how much there is.
type overviewPage struct {
	Problems []problemSummary `json:"problems"`
	Counts   []count          `json:"counts"`
}

// problemSummary is one kind of things that are not as they should be.
type problemSummary struct {
	Title string `json:"title"`
	Count int    `json:"count"`
	// Page is where all of them are, with its query.
	Page string `json:"page"`
	// Examples are the first of them.
	Examples []string `json:"examples,omitempty"`
}

// count is how many there are of something.
type count struct {
	Title string `json:"title"`
	Count int    `json:"count"`
	Page  string `json:"page"`
}

// maxExamples is how many examples a summary has.
const maxExamples = 5

func (h *handler) overview(*query) (any, error) {
	out := &overviewPage{Problems: []problemSummary{}, Counts: []count{}}
	h.overviewOfServer(out)
	if h.Policies != nil {
		out.problem("Objects, or parts of them, that change nothing", link(pagePolicies), textsOf(h.Policies.Ineffective()))
	}
	if c, ok := registry.As[conflicter](h.Services); ok {
		out.problem("Host names that are defined more than once", link(pageConflicts), textsOf(c.Conflicts()))
	}
	h.overviewOfSources(out)
	h.overviewOfContent(out)
	return out, nil
}

// overviewOfServer adds what proxies and pushes say.
func (h *handler) overviewOfServer(out *overviewPage) {
	if h.Server == nil {
		return
	}
	var refused, failed, overdue []string
	all := h.Server.Proxies()
	for _, p := range all {
		for _, r := range refusedRows(p) {
			refused = append(refused, r.String())
		}
		for _, typeURL := range sortedTypes(p.Types) {
			t := p.Types[typeURL]
			for _, f := range t.Failed {
				failed = append(failed, fmt.Sprintf("%s: %s %s: %s", p.ID, typeName(typeURL), f.Name, redactText(f.Error)))
			}
			if t.Overdue {
				overdue = append(overdue, fmt.Sprintf("%s: %s", p.ID, typeName(typeURL)))
			}
		}
	}
	out.problem("Resources that a proxy refuses", link(pageProxies, "state", stateRefusing), textList(refused))
	out.problem("Resources that cannot be made as they should be", link(pageProxies, "state", stateFailed), textList(failed))
	out.problem("Types that a proxy does not answer", link(pageProxies, "state", stateOverdue), textList(overdue))
	out.problem("Registries that never called the server", link(pageVerify), textList(h.silent()))
	if pusher, ok := h.pusher(); ok {
		switch s := pusher.State(); {
		case !s.Running:
			out.problem("The server does not run, so that nothing is pushed", link(pageQueue), textList([]string{""}))
		case s.Last.Failed:
			out.problem("The last push has failed; the log has the reason", link(pageQueue), textList([]string{""}))
		}
	}
	out.Counts = append(out.Counts, count{"connected proxies", len(all), link(pageProxies)})
}

// overviewOfSources adds what sources say.
func (h *handler) overviewOfSources(out *overviewPage) {
	var broken, errors, warnings []string
	for _, s := range h.sourceRows() {
		switch {
		case s.Error != "":
			broken = append(broken, s.Name+": "+s.Error)
		case !s.Synced:
			broken = append(broken, s.Name+": has not synced")
		case s.Stale:
			broken = append(broken, s.Name+": stale")
		}
		for _, p := range s.problems {
			if text := redactText(p.Text); p.Warning {
				warnings = append(warnings, text)
			} else {
				errors = append(errors, text)
			}
		}
	}
	out.problem("Sources that do not show what their origin has", link(pageSources), textList(broken))
	out.problem("Parts of sources that are not taken, of which the last good state stays", link(pageSources), textList(errors))
	out.problem("Warnings of sources", link(pageSources), textList(warnings))
}

// overviewOfContent adds how much there is.
func (h *handler) overviewOfContent(out *overviewPage) {
	if h.Services != nil {
		out.Counts = append(out.Counts, count{"services", len(h.Services.Services()), link(pageServices)})
	}
	if h.Configs == nil {
		return
	}
	for _, s := range h.Configs.Schemas().All() {
		if n := len(h.Configs.List(s.GroupVersionKind, configstore.NamespaceAll)); n > 0 {
			out.Counts = append(out.Counts, count{s.GroupVersionKind.Kind, n, link(pageConfigs, "kind", s.GroupVersionKind.String())})
		}
	}
}

// problem adds a kind of problems, unless there are none.
func (o *overviewPage) problem(title, page string, all examples) {
	if all.count == 0 {
		return
	}
	p := problemSummary{Title: title, Count: all.count, Page: page}
	for i := range min(all.count, maxExamples) {
		if text := all.text(i); text != "" {
			p.Examples = append(p.Examples, redactText(text))
		}
	}
	o.Problems = append(o.Problems, p)
}

// examples are things of which the first are shown as texts.
type examples struct {
	count int
	text  func(int) string
}

func textList(all []string) examples { return examples{len(all), func(i int) string { return all[i] }} }

// textsOf returns things that say themselves what they are.
func textsOf[S fmt.Stringer](all []S) examples {
	return examples{len(all), func(i int) string { return all[i].String() }}
}
