// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// decoder walks the tree of one object and collects problems. The tree has been surveyed, so it is
// finite and not too deep.
type decoder struct {
	lenient bool
	// above is the number of lines of the input above the tree.
	above    int
	path     []step
	problems []Problem
	// wrong counts all problems, whether kept or dropped.
	wrong int
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

func (d *decoder) pushField(name string) { d.path = append(d.path, step{name: name}) }
func (d *decoder) pushKey(name string)   { d.path = append(d.path, step{name: name, kind: stepKey}) }

func (d *decoder) pushIndex(i int) { d.path = append(d.path, step{index: i, kind: stepIndex}) }
func (d *decoder) pop()            { d.path = d.path[:len(d.path)-1] }

// errorf notes a problem of the field that the decoder is at.
func (d *decoder) errorf(n *yaml.Node, format string, args ...any) {
	d.wrong++
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

// maxSteps is the length of the longest path that is written whole.
const maxSteps = 20

// formatPath writes a path as in "spec.ports[1].number", with keys that are no
// plain words in brackets: metadata.labels["app.kubernetes.io/name"].
func formatPath(path []step) string {
	var b strings.Builder
	for i, s := range path {
		if i == maxSteps {
			b.WriteString("…")
			break
		}
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

// follow returns the node that a node is, or is an alias of.
func follow(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// entry is a key of a mapping with its value.
type entry struct {
	key     string
	keyNode *yaml.Node
	value   *yaml.Node
}

// entryList collects entries. The first entry of a key wins.
type entryList struct {
	entries []entry
	keys    map[string]struct{}
}

// add returns false if there is an entry of the key already.
func (l *entryList) add(e entry) bool {
	if _, twice := l.keys[e.key]; twice {
		return false
	}
	l.keys[e.key] = struct{}{}
	l.entries = append(l.entries, e)
	return true
}

// entries returns the entries of a mapping, with merge keys applied. Duplicate keys are recorded as
// problems and returned once.
func (d *decoder) entries(n *yaml.Node) []entry {
	l := entryList{make([]entry, 0, len(n.Content)/2), make(map[string]struct{}, len(n.Content)/2)}
	d.collect(n, &l, false)
	return l.entries
}

// collect adds the entries of a mapping, followed by the entries of the mappings that it merges. If
// merged is true, repeated keys are expected.
func (d *decoder) collect(n *yaml.Node, l *entryList, merged bool) {
	var merges []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		keyNode, value := n.Content[i], n.Content[i+1]
		if isMergeKey(keyNode) {
			merges = append(merges, value)
			continue
		}
		key, ok := d.key(keyNode)
		if ok && !l.add(entry{key: key, keyNode: keyNode, value: value}) && !merged {
			d.pushKey(key)
			d.errorf(keyNode, "is given twice")
			d.pop()
		}
	}
	for _, m := range merges {
		d.merge(m, l)
	}
}

// merge adds the entries of the mapping, or of the list of mappings, that a
// merge key names.
func (d *decoder) merge(n *yaml.Node, l *entryList) {
	switch from := follow(n); from.Kind {
	case yaml.MappingNode:
		d.collect(from, l, true)
	case yaml.SequenceNode:
		for _, item := range from.Content {
			if follow(item).Kind == yaml.SequenceNode {
				d.errorf(item, "merges a list of lists")
				continue
			}
			d.merge(item, l)
		}
	default:
		d.errorf(from, "merges something that is not an object")
	}
}

func isMergeKey(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.Tag == "!!merge"
}

// key returns a mapping key as the JSON object that kubectl makes has it.
func (d *decoder) key(n *yaml.Node) (string, bool) {
	s, err := resolve(n)
	switch {
	case err != nil:
		d.errorf(n, "has a key that %s", err)
		return "", false
	case s.kind == notScalar:
		d.errorf(n, "has a key that is not a string")
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
	if err != nil {
		return text // .nan, .inf, -.inf
	}
	return strconv.FormatFloat(f, 'g', -1, 32)
}
