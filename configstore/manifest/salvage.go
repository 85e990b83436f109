// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"

	"github.com/pilotkit/pilotkit/configstore"
)

// salvage returns the object that a document names although it is not valid
// YAML as a whole, or the zero key. It reads the sections apiVersion, kind and
// metadata, each on its own: what is broken is mostly the spec.
func (p *parser) salvage(c chunk) configstore.ConfigKey {
	sections := topLevel(c.text)
	var head []byte
	for _, name := range []string{fieldAPIVersion, fieldKind, fieldMetadata} {
		if len(sections[name]) != 1 {
			return configstore.ConfigKey{}
		}
		head = append(append(head, sections[name][0]...), '\n')
	}
	roots, problem := yamlTrees(chunk{text: head})
	if problem != nil || len(roots) != 1 {
		return configstore.ConfigKey{}
	}
	sub := parser{schemas: p.schemas, opts: p.opts}
	sub.object(roots[0], "", configstore.GroupVersionKind{}, newDecoder(chunk{text: head}, p.opts))
	if len(sub.docs) != 1 {
		return configstore.ConfigKey{}
	}
	return sub.docs[0].Key
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
