// SPDX-License-Identifier: Apache-2.0

package file

import (
	"errors"

	"github.com/pilotkit/pilotkit/configstore"
)

// claim is the statement of one document that its file defines an object.
type claim struct {
	// content and sequence say which of several claims of a key comes first.
	content  *content
	sequence int
	// place is where the document is, and position finds a field in it. The
	// latter lives only as long as the reload that parsed the document.
	place    Error
	position func(field string) (line, column int)
	key      configstore.ConfigKey
	// config is the object, or the last good state of it, or nil if there is
	// none.
	config *configstore.Config
	// stale means that config is not what the document says now: the document
	// is bad, or cannot be found in a file that cannot be read.
	stale bool
	// vague means that nothing in the file names the object any more, but that
	// a part of it cannot be read, which may be about it.
	vague bool
	// previous is the last good state before this one, should the store refuse
	// it.
	previous *configstore.Config
	// refused is the verdict of the store.
	refused *Error
}

// good says that the document is good, and what the last good state before it
// was, or nil.
func (c *claim) good(config, previous *configstore.Config) {
	c.config, c.previous = config, previous
	if previous != nil && previous.Equal(*config) {
		// The same object, so that it is recognised by its address.
		c.config, c.previous = previous, nil
	}
}

// keep says that the document is bad, and what is kept of its object, or nil.
func (c *claim) keep(config *configstore.Config) { c.config, c.stale = config, true }

// refuse notes the verdict of the store and falls back to the last good state.
func (c *claim) refuse(err error) {
	e := c.place
	e.Err = err
	var v *configstore.ValidationError
	if errors.As(err, &v) && len(v.Violations) > 0 && c.position != nil {
		e.Line, e.Column = c.position(v.Violations[0].Field)
	}
	c.refused, c.content.refused = &e, true
	c.config, c.previous, c.stale = c.previous, nil, true
}
