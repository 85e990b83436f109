// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/pilotkit/pilotkit/configstore"
)

const listSuffix = "List"

// listKind reports whether a kind is a list of objects, and returns the kind of its items if these
// may omit it.
func (p *parser) listKind(kind configstore.GroupVersionKind) (items configstore.GroupVersionKind, ok bool) {
	if p.in.schemas.Has(kind) {
		return configstore.GroupVersionKind{}, false
	}
	if kind == (configstore.GroupVersionKind{Version: "v1", Kind: listSuffix}) {
		return configstore.GroupVersionKind{}, true
	}
	items = kind
	items.Kind, ok = strings.CutSuffix(kind.Kind, listSuffix)
	return items, ok && p.in.schemas.Has(items)
}

// list reads the items of a list, each on its own.
func (p *parser) list(n *yaml.Node, item string, kind configstore.GroupVersionKind, entries []entry, d *decoder) {
	var items *yaml.Node
	for _, e := range entries {
		switch e.key {
		case fieldAPIVersion, fieldKind, fieldMetadata:
		case fieldItems:
			d.pushField(fieldItems)
			if !isNull(e.value) {
				items = d.list(e.value)
			}
			d.pop()
		default:
			if !d.lenient {
				d.fieldErrorf(e.keyNode, e.key, "unknown field")
			}
		}
	}
	if len(d.problems) > 0 {
		p.refuse(d, n, Document{Item: item})
		d.problems = nil
	}
	if items == nil {
		return
	}
	prefix := item
	if prefix != "" {
		prefix += "."
	}
	for i, child := range items.Content {
		p.object(child, prefix+fieldItems+"["+strconv.Itoa(i)+"]", kind, d)
		d.problems = nil
	}
}
