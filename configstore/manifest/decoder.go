// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

const (
	// maxDepth is the deepest nesting that is read, in levels below the
	// object.
	maxDepth = 200
	// budgetBase and budgetFactor bound the nodes and bytes that are visited in
	// a document. Without aliases no document comes near.
	budgetBase   = 1 << 20
	budgetFactor = 16
)

// decoder walks the tree of one object and collects what is wrong with it.
type decoder struct {
	lenient bool
	// above is the number of lines of the input above the tree.
	above    int
	budget   int
	spent    bool
	depth    int
	path     []step
	problems []Problem
}

// step is one element of a path: a field, a map key or an index.
type step struct {
	name  string
	index int
	kind  stepKind
}

type stepKind int

const (
	stepField stepKind = iota
	stepKey
	stepIndex
)

func newDecoder(c chunk, opts Options) *decoder {
	return &decoder{lenient: opts.Lenient, above: c.line, budget: budgetBase + budgetFactor*len(c.text)}
}

func (d *decoder) pushField(name string) { d.path = append(d.path, step{name: name}) }
func (d *decoder) pushKey(name string)   { d.path = append(d.path, step{name: name, kind: stepKey}) }

func (d *decoder) pushIndex(i int) { d.path = append(d.path, step{index: i, kind: stepIndex}) }
func (d *decoder) pop()            { d.path = d.path[:len(d.path)-1] }

// errorf notes a problem of the field that the decoder is at.
func (d *decoder) errorf(n *yaml.Node, format string, args ...any) {
	if len(d.problems) >= maxProblems {
		return
	}
	d.problems = append(d.problems, Problem{
		Path: formatPath(d.path), Line: d.above + n.Line, Column: n.Column, Message: fmt.Sprintf(format, args...),
	})
}

// fieldErrorf notes a problem of a field of the message that the decoder is at.
func (d *decoder) fieldErrorf(n *yaml.Node, name, format string, args ...any) {
	d.pushField(name)
	d.errorf(n, format, args...)
	d.pop()
}

// formatPath writes a path as in "spec.ports[1].number", with keys that are no
// plain words in brackets: metadata.labels["app.kubernetes.io/name"].
func formatPath(path []step) string {
	var b strings.Builder
	for _, s := range path {
		switch {
		case s.kind == stepIndex:
			b.WriteString("[" + strconv.Itoa(s.index) + "]")
		case !isWord(s.name):
			b.WriteString("[" + strconv.Quote(shorten(s.name)) + "]")
		default:
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(shorten(s.name))
		}
	}
	return b.String()
}

func isWord(s string) bool {
	for _, r := range s {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-' {
			return false
		}
	}
	return s != ""
}

// enter counts a level of nesting; leave must follow if it returns true.
func (d *decoder) enter(n *yaml.Node) bool {
	if d.depth >= maxDepth {
		d.errorf(n, "is nested more than %d levels deep", maxDepth)
		return false
	}
	d.depth++
	return true
}

func (d *decoder) leave() { d.depth-- }

// visit follows aliases and charges the node to the budget. It returns nil if
// the budget is used up.
func (d *decoder) visit(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if d.budget -= 1 + len(n.Value); d.budget >= 0 {
		return n
	}
	if !d.spent {
		d.spent = true
		d.errorf(n, "expands to too much through its aliases")
	}
	return nil
}

// entry is a key of a mapping with its value.
type entry struct {
	key     string
	keyNode *yaml.Node
	value   *yaml.Node
}

// entries returns what a mapping holds, merge keys applied. Keys that are given
// twice are noted as problems and returned once.
func (d *decoder) entries(n *yaml.Node) []entry {
	out := make([]entry, 0, len(n.Content)/2)
	var merges []*yaml.Node
	seen := newKeySet(len(n.Content) / 2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		keyNode, value := n.Content[i], n.Content[i+1]
		if isMergeKey(keyNode) {
			merges = append(merges, value)
			continue
		}
		key, ok := d.key(keyNode)
		if !ok {
			continue
		}
		if !seen.add(key, out) {
			d.pushKey(key)
			d.errorf(keyNode, "is given twice")
			d.pop()
			continue
		}
		out = append(out, entry{key: key, keyNode: keyNode, value: value})
	}
	for _, m := range merges {
		out = d.merge(out, &seen, m)
	}
	return out
}

// merge adds the entries of the mapping, or of the list of mappings, that a
// merge key names. What is there already wins.
func (d *decoder) merge(out []entry, seen *keySet, from *yaml.Node) []entry {
	from = d.visit(from)
	if from == nil || !d.enter(from) {
		return out
	}
	defer d.leave()
	switch from.Kind {
	case yaml.MappingNode:
		for _, e := range d.entries(from) {
			if seen.add(e.key, out) {
				out = append(out, e)
			}
		}
	case yaml.SequenceNode:
		for _, item := range from.Content {
			if target := d.visit(item); target != nil && target.Kind == yaml.SequenceNode {
				d.errorf(item, "merges a list of lists")
				continue
			}
			out = d.merge(out, seen, item)
		}
	default:
		d.errorf(from, "merges something that is not an object")
	}
	return out
}

func isMergeKey(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.Tag == "!!merge"
}

// key returns a mapping key as the JSON object that kubectl makes has it.
func (d *decoder) key(n *yaml.Node) (string, bool) {
	k := d.visit(n)
	if k == nil {
		return "", false
	}
	if k.Kind != yaml.ScalarNode {
		d.errorf(n, "has a key that is no string")
		return "", false
	}
	s, err := resolveNode(k)
	switch {
	case err != nil:
		d.errorf(n, "has a key that %s", err)
		return "", false
	case s.kind == scalarNull:
		d.errorf(n, "has a null key")
		return "", false
	case s.kind == scalarBool:
		return strconv.FormatBool(s.bool), true
	case s.kind == scalarFloat:
		return floatKey(s.text), true
	default:
		return s.text, true
	}
}

// floatKey writes a key such as 1.10 as kubectl does: 1.1.
func floatKey(text string) string {
	f, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil:
		return text
	case math.IsNaN(f):
		return ".nan"
	case math.IsInf(f, 1):
		return ".inf"
	case math.IsInf(f, -1):
		return "-.inf"
	}
	return strconv.FormatFloat(f, 'g', -1, 32)
}

// keySet finds keys that are given twice.
type keySet struct {
	// many is nil for small mappings, whose entries are compared one by one.
	many map[string]struct{}
}

const fewKeys = 12

func newKeySet(size int) keySet {
	if size <= fewKeys {
		return keySet{}
	}
	return keySet{many: make(map[string]struct{}, size)}
}

// add returns false if the key is among the entries already.
func (s *keySet) add(key string, entries []entry) bool {
	if s.many == nil && len(entries) > fewKeys {
		s.many = make(map[string]struct{}, 2*len(entries))
		for _, e := range entries {
			s.many[e.key] = struct{}{}
		}
	}
	if s.many == nil {
		for _, e := range entries {
			if e.key == key {
				return false
			}
		}
		return true
	}
	if _, ok := s.many[key]; ok {
		return false
	}
	s.many[key] = struct{}{}
	return true
}
