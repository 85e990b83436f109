// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Position returns the line and column, from 1, of a field of the object, which
// is named as in configstore.Violation: "spec.ports[1].number". If the field
// itself is not in the input, it is the place of the nearest field around it
// that is, at last that of the object.
func (d Document) Position(field string) (line, column int) {
	line, column = d.Line, d.Column
	n := d.node
	for n != nil && field != "" {
		var s step
		s, field = nextStep(field)
		key, value := child(n, s)
		if value == nil {
			break
		}
		line, column = d.above+key.Line, key.Column
		n = value
	}
	return line, column
}

// nextStep cuts the first element off a path.
func nextStep(path string) (step, string) {
	path = strings.TrimPrefix(path, ".")
	if rest, ok := strings.CutPrefix(path, "["); ok {
		if quoted, err := strconv.QuotedPrefix(rest); err == nil {
			name, _ := strconv.Unquote(quoted)
			return step{name: name, kind: stepKey}, strings.TrimPrefix(rest[len(quoted):], "]")
		}
		inner, rest, _ := strings.Cut(rest, "]")
		if i, err := strconv.Atoi(inner); err == nil {
			return step{index: i, kind: stepIndex}, rest
		}
		return step{name: inner, kind: stepKey}, rest
	}
	if end := strings.IndexAny(path, ".["); end >= 0 {
		return step{name: path[:end]}, path[end:]
	}
	return step{name: path}, ""
}

// child returns what stands at one step below a node, and the node that marks
// its place.
func child(n *yaml.Node, s step) (key, value *yaml.Node) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	switch {
	case n.Kind == yaml.SequenceNode && s.kind == stepIndex:
		if s.index >= 0 && s.index < len(n.Content) {
			return n.Content[s.index], n.Content[s.index]
		}
	case n.Kind == yaml.MappingNode && s.kind != stepIndex:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if sameField(n.Content[i].Value, s) {
				return n.Content[i], n.Content[i+1]
			}
		}
	}
	return nil, nil
}

// sameField reports whether a key is the one that a step names. Fields may be
// written in camelCase or with underscores.
func sameField(key string, s step) bool {
	return key == s.name || s.kind == stepField && strings.EqualFold(strings.ReplaceAll(key, "_", ""), s.name)
}
