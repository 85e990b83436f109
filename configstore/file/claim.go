// SPDX-License-Identifier: Apache-2.0

package file

import (
	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/manifest"
)

// claim is the statement of one document that its file defines an object.
type claim struct {
	// section and sequence say which of several claims of a key comes first.
	section  *section
	sequence int
	place    place
	key      configstore.ConfigKey
	// config is the object, or the last good state of it, or nil if there is
	// none.
	config *configstore.Config
	// warnings are what the schema finds questionable about the object.
	warnings []warning
	// stale means that config is not what the document says now: the document
	// is bad, or cannot be found in a file that cannot be read.
	stale bool
	// vague means that nothing in the file names the object any more, but that
	// a part of it cannot be read, which may be about it.
	vague bool
	// removed is set while the claim is taken out of the index.
	removed bool
}

// warning is one thing that is questionable about an object.
type warning struct {
	place     place
	violation configstore.Violation
}

// claim adds a claim of a document to its section.
func (s *section) claim(doc manifest.Document) *claim { return s.claimAt(placeOf(doc), doc.Key) }

func (s *section) claimAt(p place, key configstore.ConfigKey) *claim {
	c := &claim{section: s, sequence: len(s.claims), place: p, key: key}
	s.claims = append(s.claims, c)
	return c
}

// keep says that the document is bad, and what is kept of its object, or nil.
func (c *claim) keep(config *configstore.Config) { c.config, c.stale = config, true }

// at returns the place of the claim in its file.
func (c *claim) at() place {
	p := c.place
	p.document += c.section.documents
	if p.line > 0 {
		p.line += c.section.lines
	}
	return p
}

// error returns an error about the claim.
func (c *claim) error(err error) *Error { return c.section.errorAt(c.place, c.key, err) }
