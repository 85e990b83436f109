// SPDX-License-Identifier: Apache-2.0

package file

import (
	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/manifest"
)

// definition is the statement of one document that its file defines an object.
type definition struct {
	// section and sequence say which of several definitions of a key comes first.
	section  *section
	sequence int
	position position
	key      configstore.ConfigKey
	// config is the object, or the last good state of it, or nil if there is
	// none.
	config *configstore.Config
	// checked is the evidence that config is valid. It is kept for the writes of
	// the look that has read the document only.
	checked *configstore.Checked
	// warnings are the warnings of the schema about the object.
	warnings []warning
	// stale means that config differs from the current document, because the document is bad, or
	// because it cannot be found in an unreadable file.
	stale bool
	// unconfirmed means that nothing in the file names the object any more, but a
	// part of the file cannot be read, and may define it.
	unconfirmed bool
	// removed is set while the definition is taken out of the index.
	removed bool
}

// warning is one thing that is questionable about an object.
type warning struct {
	position  position
	violation configstore.Violation
}

// definition adds the definition that a document is to its section.
func (s *section) definition(doc manifest.Document) *definition {
	return s.defineAt(positionOf(doc), doc.Key)
}

// defineAt adds a definition of an object at a place of the section.
func (s *section) defineAt(p position, key configstore.ConfigKey) *definition {
	d := &definition{section: s, sequence: len(s.definitions), position: p, key: key}
	s.definitions = append(s.definitions, d)
	return d
}

// keep records that the document is bad, and the last good state of its object, or nil.
func (d *definition) keep(config *configstore.Config) { d.config, d.stale = config, true }

// at returns the place of the definition in its file.
func (d *definition) at() position {
	p := d.position
	p.document += d.section.documents
	if p.line > 0 {
		p.line += d.section.lines
	}
	return p
}

// error returns an error about the definition.
func (d *definition) error(err error) *Error { return d.section.errorAt(d.position, d.key, err) }
