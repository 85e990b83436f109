// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// compareResults compares outcomes; messages and warnings are incidental.
func compareResults(recorded, results []result) []string {
	line := func(list []result) []string {
		var out []string
		for _, r := range list {
			out = append(out, r.Object+" "+r.Outcome)
		}
		return out
	}
	recorded = slices.Clone(recorded)
	for i := range min(len(recorded), len(results)) {
		recorded[i].Outcome = wantedOutcome(recorded[i], results[i])
	}
	if slices.Equal(line(recorded), line(results)) {
		return nil
	}
	var messages []string
	for _, r := range results {
		messages = append(messages, r.Messages...)
	}
	return []string{fmt.Sprintf("results: recorded %q, ours %q (%q)", line(recorded), line(results), messages)}
}

// comparison is the pair of states of a proxy to compare: the recorded one and the current one.
type comparison struct {
	*facts
	proxy     proxySpec
	want, got map[section]resources
}

// compareProxy returns the differences of all sections. Of variants of a recorded
// section any is right.
func compareProxy(o *facts, p proxySpec, recorded recordedProxy, got map[section]resources) []string {
	var out []string
	first := newComparison(o, p, recorded, got)
	first.applyRules()
	for _, s := range sections {
		if len(recorded[s]) == 0 {
			continue
		}
		differences := compareSection(s, first.want[s], first.got[s])
		for _, variant := range recorded[s][1:] {
			if len(differences) == 0 {
				break
			}
			c := newComparison(o, p, recorded, got)
			c.want[s] = cloneAll(variant)
			c.applyRules()
			if len(compareSection(s, c.want[s], c.got[s])) == 0 {
				differences = nil
			}
		}
		out = append(out, differences...)
	}
	return out
}

func newComparison(o *facts, p proxySpec, recorded recordedProxy, got map[section]resources) *comparison {
	c := &comparison{facts: o, proxy: p, want: make(map[section]resources), got: make(map[section]resources)}
	for _, s := range sections {
		if variants := recorded[s]; len(variants) > 0 {
			c.want[s] = cloneAll(variants[0])
		}
		c.got[s] = cloneAll(got[s])
	}
	return c
}

func cloneAll(list resources) resources {
	out := make(resources, len(list))
	for i, r := range list {
		out[i] = clone(r)
	}
	return out
}

// compareSection returns the differences of two lists of resources.
func compareSection(s section, want, got resources) []string {
	byName := func(list resources) map[string]tree {
		out := make(map[string]tree, len(list))
		for _, r := range list {
			order(s, r)
			out[name(s, r)] = r
		}
		return out
	}
	recorded, ours := byName(want), byName(got)
	all := maps.Clone(recorded)
	maps.Copy(all, ours)
	var out []string
	for _, n := range slices.Sorted(maps.Keys(all)) {
		switch r, g := recorded[n], ours[n]; {
		case g == nil:
			out = append(out, fmt.Sprintf("%s %q is missing: %s", s, n, compact(r)))
		case r == nil:
			out = append(out, fmt.Sprintf("%s %q should not be there: %s", s, n, compact(g)))
		default:
			var lines []string
			diff("", r, g, &lines)
			if len(lines) > 0 {
				out = append(out, fmt.Sprintf("%s %q differs:\n\t%s", s, n, strings.Join(lines, "\n\t")))
			}
		}
	}
	return out
}

// diff appends the differences of two values: the path, the recorded (-) and our
// (+) value.
func diff(path string, want, got any, out *[]string) {
	w, isTree := want.(tree)
	g, alsoTree := got.(tree)
	if isTree && alsoTree {
		all := maps.Clone(w)
		maps.Copy(all, g)
		for _, field := range slices.Sorted(maps.Keys(all)) {
			diff(path+"."+field, at(w, field), at(g, field), out)
		}
		return
	}
	wl, isList := want.([]any)
	gl, alsoList := got.([]any)
	switch {
	case isList && alsoList && labelled(wl) && labelled(gl):
		diffLabelled(path, byLabel(wl), byLabel(gl), out)
		return
	case isList && alsoList:
		for i := range min(len(wl), len(gl)) {
			diff(fmt.Sprintf("%s[%d]", path, i), wl[i], gl[i], out)
		}
		if len(wl) != len(gl) {
			common := min(len(wl), len(gl))
			*out = append(*out, path+" goes on:\n\t  - "+show(wl[common:])+"\n\t  + "+show(gl[common:]))
		}
		return
	}
	if a, b := show(want), show(got); a != b {
		*out = append(*out, path+":\n\t  - "+a+"\n\t  + "+b)
	}
}

// diffLabelled compares elements by their names. Equal differences of several are
// shown once.
func diffLabelled(path string, want, got tree, out *[]string) {
	all := maps.Clone(want)
	maps.Copy(all, got)
	first := make(map[string]string)
	for _, l := range slices.Sorted(maps.Keys(all)) {
		var lines []string
		diff("", at(want, l), at(got, l), &lines)
		if len(lines) == 0 {
			continue
		}
		key := strings.Join(lines, "\n")
		if other, again := first[key]; again {
			*out = append(*out, path+"["+l+"]: as of "+other)
			continue
		}
		first[key] = l
		for _, line := range lines {
			*out = append(*out, path+"["+l+"]"+line)
		}
	}
}

// labelled reports whether all elements of a list have different names: then those
// are compared that have one name.
func labelled(list []any) bool { return len(list) > 0 && len(byLabel(list)) == len(list) }

func byLabel(list []any) tree {
	out := make(tree)
	for _, v := range list {
		if l := label(v); l != "" {
			out[l] = v
		}
	}
	return out
}

// label names an element of a list, if it has a name.
func label(v any) string {
	o, ok := v.(tree)
	if !ok {
		return ""
	}
	for _, n := range append([]string{text(o, "name")}, texts(o, "domains")...) {
		if n != "" {
			return " " + n
		}
	}
	if where := object(o, "locality"); where != nil {
		return fmt.Sprint(text(where, "region"), "/", text(where, "zone"), "/", text(where, "subZone"), " ", o["priority"])
	}
	return ""
}

// absent is the value of a field that is not there.
type absent struct{}

func at(o tree, field string) any {
	if v, ok := o[field]; ok {
		return v
	}
	return absent{}
}

func show(v any) string {
	if v == (absent{}) {
		return "nothing"
	}
	return compact(v)
}
