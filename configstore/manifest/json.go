// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"encoding/json"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// appendJSON appends the JSON form of a tree. It returns false if the tree has
// none; the problem is noted.
func (d *decoder) appendJSON(out []byte, n *yaml.Node) ([]byte, bool) {
	switch target := follow(n); target.Kind {
	case yaml.MappingNode:
		return d.appendJSONObject(out, target)
	case yaml.SequenceNode:
		out = append(out, '[')
		for i, item := range target.Content {
			if i > 0 {
				out = append(out, ',')
			}
			d.pushIndex(i)
			var ok bool
			out, ok = d.appendJSON(out, item)
			d.pop()
			if !ok {
				return out, false
			}
		}
		return append(out, ']'), true
	default:
		return d.appendJSONScalar(out, n)
	}
}

func (d *decoder) appendJSONObject(out []byte, n *yaml.Node) ([]byte, bool) {
	out = append(out, '{')
	for i, e := range d.entries(n) {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(appendJSONString(out, e.key), ':')
		d.pushKey(e.key)
		var ok bool
		out, ok = d.appendJSON(out, e.value)
		d.pop()
		if !ok {
			return out, false
		}
	}
	return append(out, '}'), true
}

func (d *decoder) appendJSONScalar(out []byte, n *yaml.Node) ([]byte, bool) {
	s, ok := d.value(n)
	if !ok {
		return out, false
	}
	switch s.kind {
	case scalarNull:
		return append(out, "null"...), true
	case scalarBool:
		return strconv.AppendBool(out, s.bool), true
	case scalarInt:
		return append(out, s.text...), true
	case scalarFloat:
		f, err := strconv.ParseFloat(s.text, 64)
		if err != nil {
			d.errorf(n, "is no number that JSON can hold: %s", s.text)
			return out, false
		}
		return strconv.AppendFloat(out, f, 'g', -1, 64), true
	default:
		return appendJSONString(out, s.text), true
	}
}

// appendJSONString appends a JSON string.
func appendJSONString(out []byte, s string) []byte {
	// Strings always have a JSON form.
	text, _ := json.Marshal(s)
	return append(out, text...)
}
