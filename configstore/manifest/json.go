// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"encoding/json"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// jsonOf returns the value of a node in the types of encoding/json. It notes values that JSON does
// not have.
func (d *decoder) jsonOf(n *yaml.Node) any {
	switch target := follow(n); target.Kind {
	case yaml.MappingNode:
		entries := d.entries(target)
		object := make(map[string]any, len(entries))
		for _, e := range entries {
			d.pushKey(e.key)
			object[e.key] = d.jsonOf(e.value)
			d.pop()
		}
		return object
	case yaml.SequenceNode:
		list := make([]any, len(target.Content))
		for i, item := range target.Content {
			d.pushIndex(i)
			list[i] = d.jsonOf(item)
			d.pop()
		}
		return list
	default:
		return d.jsonScalar(n)
	}
}

func (d *decoder) jsonScalar(n *yaml.Node) any {
	s, _ := d.value(n)
	switch s.kind {
	case scalarNull:
		return nil
	case scalarBool:
		return s.bool
	case scalarInt:
		return json.Number(s.text)
	case scalarFloat:
		f, err := strconv.ParseFloat(s.text, 64)
		if err != nil {
			d.errorf(n, "is no number that JSON can hold: %s", s.text)
		}
		return f
	default:
		return s.text
	}
}

// jsonString returns a JSON string.
func jsonString(s string) []byte {
	// Strings always have a JSON form.
	text, _ := json.Marshal(s)
	return text
}
