// SPDX-License-Identifier: Apache-2.0

package debug

import (
	"fmt"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/registry"
)

// overviewPage is the content of the first page: problems, and the number of objects.
type overviewPage struct {
	Problems []problemSummary `json:"problems"`
	Counts   []count          `json:"counts"`
}

// problemSummary summarizes all problems of one type.
type problemSummary struct {
	Title string `json:"title"`
	Count int    `json:"count"`
	// Page links to the page that lists all of them.
	Page string `json:"page"`
	// Warning is set if nothing is known to fail because of the problem.
	Warning bool `json:"warning,omitempty"`
	// Examples are the first problems of the type, at most maxExamples.
	Examples []string `json:"examples,omitempty"`

	// Shown has the same examples for the HTML page, with links.
	Shown []example `json:"-"`
}

// example is one problem. Page links to its page, "" if there is none.
type example struct{ Text, Page string }

// count is the number of objects of one type.
type count struct {
	Title string `json:"title"`
	Count int    `json:"count"`
	Page  string `json:"page"`
}

// maxExamples is the maximum number of examples of a summary.
const maxExamples = 5

func (h *handler) overview(*query) (any, error) {
	out := &overviewPage{Problems: []problemSummary{}, Counts: []count{}}
	h.overviewOfServer(out)
	if h.Policies != nil {
		h.overviewOfPolicies(out)
	}
	if c, ok := registry.As[conflicter](h.Services); ok {
		out.warning("Host names that are defined more than once", link(pageConflicts), conflictExamples(c.Conflicts()))
	}
	h.overviewOfSources(out)
	h.overviewOfContent(out)
	return out, nil
}

// overviewOfServer adds the problems of proxies and pushes.
func (h *handler) overviewOfServer(out *overviewPage) {
	if h.Server == nil {
		return
	}
	var refused, failed, overdue []example
	all := h.Server.Proxies()
	for _, p := range all {
		to := link(pageProxy, "id", p.ID, "stream", number(p.Stream))
		for _, typeURL := range sortedTypes(p.Types) {
			t := p.Types[typeURL]
			if t.Overdue {
				overdue = append(overdue, example{fmt.Sprintf("%s: %s", p.ID, typeName(typeURL)), to})
			}
		}
	}
	for _, f := range h.faults() {
		row := faultRowOf(f)
		shown := example{row.String(), link(pageProxy, "id", f.Proxy, "stream", number(f.Stream))}
		if row.isOfBuild() {
			failed = append(failed, shown)
		} else {
			refused = append(refused, shown)
		}
	}
	out.problem("Resources that a proxy refuses", link(pageProxies, "state", stateRefusing), exampleList(refused))
	out.problem("Resources that cannot be made as they should be", link(pageProxies, "state", stateFailed), exampleList(failed))
	out.problem("Types that a proxy does not answer", link(pageProxies, "state", stateOverdue), exampleList(overdue))
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

// overviewOfSources adds the problems of sources.
func (h *handler) overviewOfSources(out *overviewPage) {
	var broken []string
	var errors, warnings []example
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
			if shown := (example{p.Text, h.pageOf(p.Object)}); p.Warning {
				warnings = append(warnings, shown)
			} else {
				errors = append(errors, shown)
			}
		}
	}
	out.problem("Sources that do not show what their origin has", link(pageSources), textList(broken))
	out.problem("Parts of sources that are not taken, of which the last good state stays", link(pageSources), exampleList(errors))
	out.warning("Warnings of sources", link(pageSources), exampleList(warnings))
}

// overviewOfContent adds the numbers of services and objects.
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

// overviewOfPolicies adds the objects, and parts of objects, without effect.
func (h *handler) overviewOfPolicies(out *overviewPage) {
	all := h.Policies.Ineffective()
	out.problem("Objects, or parts of them, that change nothing", link(pagePolicies), examples{len(all), func(i int) example {
		return example{all[i].String(), h.pageOf(configstore.ConfigKey{Kind: all[i].Kind, Namespace: all[i].Namespace, Name: all[i].Name})}
	}})
}

// pageOf returns a link to the page of an object, "" if it has no page.
func (h *handler) pageOf(key configstore.ConfigKey) string {
	if key.Name == "" || !h.hasKind(key.Kind) {
		return ""
	}
	return link(pageConfig, "kind", key.Kind.String(), "namespace", key.Namespace, "name", key.Name)
}

// hasKind reports whether the store can have objects of a kind.
func (h *handler) hasKind(kind configstore.GroupVersionKind) bool {
	if h.Configs == nil {
		return false
	}
	_, ok := h.Configs.Schemas().Find(kind)
	return ok
}

func conflictExamples(all []aggregate.Conflict) examples {
	return examples{len(all), func(i int) example {
		return example{all[i].String(), link(pageConflicts, "q", string(all[i].Hostname))}
	}}
}

// warning adds problems of one type as a warning, unless there are none.
func (o *overviewPage) warning(title, page string, all examples) {
	if o.problem(title, page, all); all.count > 0 {
		o.Problems[len(o.Problems)-1].Warning = true
	}
}

// problem adds problems of one type, unless there are none.
func (o *overviewPage) problem(title, page string, all examples) {
	if all.count == 0 {
		return
	}
	p := problemSummary{Title: title, Count: all.count, Page: page}
	for i := range min(all.count, maxExamples) {
		if shown := all.at(i); shown.Text != "" {
			shown.Text = redactText(shown.Text)
			p.Examples, p.Shown = append(p.Examples, shown.Text), append(p.Shown, shown)
		}
	}
	o.Problems = append(o.Problems, p)
}

// examples is a list of problems. Only the first elements are read.
type examples struct {
	count int
	at    func(int) example
}

func exampleList(all []example) examples {
	return examples{len(all), func(i int) example { return all[i] }}
}

// textList returns examples without pages of their own.
func textList(all []string) examples {
	return examples{len(all), func(i int) example { return example{Text: all[i]} }}
}
