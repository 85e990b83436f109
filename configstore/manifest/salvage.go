// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"

	"github.com/pilotkit/pilotkit/configstore"
)

// salvage returns the identity of a document that is not valid YAML as a whole: the object or at
// least the kind, or the zero document. It reads the sections apiVersion, kind and metadata
// separately, because usually only the spec is broken.
func (p *parser) salvage(t Text) Document {
	sections := topLevel(t.Bytes)
	doc := p.head(sections, fieldAPIVersion, fieldKind, fieldMetadata)
	if doc.Key == (configstore.ConfigKey{}) {
		doc = p.head(sections, fieldAPIVersion, fieldKind)
	}
	return doc
}

// head reads some of the sections of a document.
func (p *parser) head(sections map[string][][]byte, names ...string) Document {
	var head []byte
	for _, name := range names {
		if len(sections[name]) != 1 {
			return Document{}
		}
		head = append(append(head, sections[name][0]...), '\n')
	}
	roots, message := parseYAML(head)
	if message != "" || len(roots) != 1 || survey(roots[0], &p.in.budget) != nil {
		return Document{}
	}
	sub := parser{in: p.in}
	sub.object(roots[0], "", configstore.GroupVersionKind{}, &decoder{lenient: p.in.opts.Lenient})
	if len(sub.docs) != 1 {
		return Document{}
	}
	return sub.docs[0]
}

// topLevel cuts the text of a block mapping into the sections of its keys: a
// section begins at each line that is not indented.
func topLevel(text []byte) map[string][][]byte {
	sections := map[string][][]byte{}
	name, start, pos := "", 0, 0
	flush := func(end int) {
		if name != "" {
			sections[name] = append(sections[name], text[start:end])
		}
	}
	for line := range bytes.Lines(text) {
		if c := line[0]; c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '"' || c == '\'' {
			flush(pos)
			key, _, _ := bytes.Cut(line, []byte(":"))
			name, start = string(bytes.Trim(key, " \t\r\n\"'")), pos
		} else if c == '-' && isMarker(line, "---") {
			flush(pos)
			name = ""
		}
		pos += len(line)
	}
	flush(len(text))
	return sections
}
