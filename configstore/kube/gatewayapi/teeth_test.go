// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pilotkit/pilotkit/internal/test/corpus"
	"github.com/pilotkit/pilotkit/internal/test/tier"
)

// TestTeeth changes recordings, one value at a time, and expects that the comparison detects the
// change: always if no rule of DECISIONS.md applies, and mostly otherwise.
func TestTeeth(t *testing.T) {
	t.Parallel()
	dir := corpusDirectory()
	names, err := corpus.Names(dir)
	if err != nil {
		t.Fatal(err)
	}
	tried, unseen, ruled, unseenRuled := 0, []string{}, 0, []string{}
	for n, name := range names {
		if strings.HasPrefix(name, "ingress/") || strings.HasPrefix(name, "random/") || !tier.Full() && n%3 != 0 {
			continue
		}
		path := filepath.Join(dir, filepath.FromSlash(name))
		s, err := loadScenario(path)
		if err != nil {
			t.Fatal(err)
		}
		recorded, err := loadGolden(path + goldenSuffix)
		if err != nil {
			t.Fatal(err)
		}
		sys := newSystem()
		if err := sys.applyAll(s.Initial); err != nil {
			t.Fatal(err)
		}
		for i, st := range s.Steps {
			if err := sys.step(st); err != nil {
				t.Fatal(err)
			}
			all, rules := leaves(&recorded.Steps[i]), sys.ruled(&recorded.Steps[i])
			stride := max(1, len(all)/3)
			for j := i % stride; j < len(all); j += stride {
				restore := all[j].change()
				change, seen := fmt.Sprintf("%s, step %d: %s", name, i, all[j].path), len(sys.differences("", &recorded.Steps[i])) > 0
				restore()
				if rules {
					if ruled++; !seen {
						unseenRuled = append(unseenRuled, change)
					}
				} else if tried++; !seen {
					unseen = append(unseen, change)
				}
			}
		}
	}
	t.Logf("of %d changes %d were not seen; of %d where a rule applies, %d", tried, len(unseen), ruled, len(unseenRuled))
	if len(unseen) > 0 {
		t.Errorf("of %d changes these were not seen:\n%s", tried, strings.Join(unseen, "\n"))
	}
	if len(unseenRuled)*3 > ruled {
		t.Errorf("of %d changes where a rule applies these were not seen:\n%s", ruled, strings.Join(unseenRuled, "\n"))
	}
}

// ruled reports whether a rule changes something.
func (s *system) ruled(recorded *observation) bool {
	want, got := recorded.state(), s.state()
	before := fmt.Sprint(want, got)
	decide(s, &want, &got)
	return fmt.Sprint(want, got) != before
}

// leaf is a value of a recording.
type leaf struct {
	path string
	in   map[string]any
	list []any
	key  string
	i    int
}

// change replaces the value by another one.
func (l leaf) change() (restore func()) {
	other := func(v any) any {
		switch v := v.(type) {
		case string:
			return v + "x"
		case float64:
			return v + 1
		case bool:
			return !v
		default:
			return "x"
		}
	}
	if l.in != nil {
		old := l.in[l.key]
		l.in[l.key] = other(old)
		return func() { l.in[l.key] = old }
	}
	old := l.list[l.i]
	l.list[l.i] = other(old)
	return func() { l.list[l.i] = old }
}

// leaves returns the essential values of an observation: README.md, section 4.
func leaves(o *observation) []leaf {
	var out []leaf
	var walk func(path string, v any)
	walk = func(path string, v any) {
		add := func(l leaf, v any) {
			switch v.(type) {
			case map[string]any, []any:
				walk(l.path, v)
			default:
				out = append(out, l)
			}
		}
		switch v := v.(type) {
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(v)) {
				at := path + "." + key
				incidental := key == "message" || key == "creationTimestamp" || key == "attachedListenerSets" ||
					key == "name" && !strings.Contains(path, ".spec") && !strings.Contains(path, ".listeners") && !strings.Contains(path, "Ref")
				if !incidental {
					add(leaf{path: at, in: v, key: key}, v[key])
				}
			}
		case []any:
			for i := range v {
				add(leaf{path: fmt.Sprint(path, "[", i, "]"), list: v, i: i}, v[i])
			}
		}
	}
	for name, s := range map[string]section{
		"gateways": o.Gateways, "virtualServices": o.VirtualServices, "destinationRules": o.DestRules, "status": o.Status,
	} {
		for i, m := range s.list {
			if status, _ := m["status"].(map[string]any); name == "status" && len(each(status["parents"])) == 0 && len(status) == 1 && status["parents"] != nil {
				continue // an empty list
			}
			walk(fmt.Sprint(name, "[", i, "]"), m)
		}
	}
	slices.SortFunc(out, func(a, b leaf) int { return strings.Compare(a.path, b.path) })
	return out
}
