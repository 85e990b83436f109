// SPDX-License-Identifier: Apache-2.0

package file

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/manifest"
)

// racyWindow is how long after its last change a file may change again without
// a difference in its times, on the coarsest file systems in use.
const racyWindow = 2 * time.Second

// content is what is known of one file. It is replaced as a whole when the file
// changes.
type content struct {
	// name is relative to the directory, path begins with it.
	name, path string
	// info is the file as it was when it was read; settled means that a later
	// change will show in it.
	info    fs.FileInfo
	settled bool
	hash    [sha256.Size]byte
	claims  []*claim
	// errs are the documents that cannot be read, failure is what keeps the
	// file as a whole from being read.
	errs    []*Error
	failure *Error
	// refused is set if the store has refused one of the claims.
	refused bool
	// mistaken holds, for each document of an unknown kind, the objects that it
	// was about before its kind became unknown.
	mistaken map[configstore.ConfigKey][]configstore.ConfigKey
	// emptied is when the file was first seen without content that it had
	// before; zero if it is not waited for.
	emptied time.Time
}

// unchanged reports whether a file need not be read again.
func (c *content) unchanged(info fs.FileInfo) bool {
	return c.settled && c.failure == nil && c.emptied.IsZero() &&
		c.info.Size() == info.Size() && c.info.ModTime().Equal(info.ModTime()) && os.SameFile(c.info, info)
}

// unseen reports whether the file cannot be read because of its directory.
func (c *content) unseen() bool { return c.info == nil && c.failure == nil }

// hasObjects reports whether there is anything to lose.
func (c *content) hasObjects() bool {
	for _, cl := range c.claims {
		if cl.config != nil {
			return true
		}
	}
	return false
}

// read returns the content of a file and its state before it was read.
func read(path string, limit int) (data []byte, info fs.FileInfo, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if info, err = f.Stat(); err != nil {
		return nil, nil, err
	}
	var r io.Reader = f
	size := info.Size()
	if limit >= 0 {
		r, size = io.LimitReader(f, int64(limit)+1), min(size, int64(limit)+1)
	}
	buffer := bytes.NewBuffer(make([]byte, 0, size+bytes.MinRead))
	if _, err = buffer.ReadFrom(r); err != nil {
		return nil, nil, err
	}
	if limit >= 0 && buffer.Len() > limit {
		return nil, nil, fmt.Errorf("the file is larger than the limit of %d bytes", limit)
	}
	return buffer.Bytes(), info, nil
}

// parse makes the content of a file's bytes. Documents that are bad keep what
// old, the content before, holds of their objects:
//
//   - A document that names its object keeps that object, whatever else is
//     wrong with it, broken YAML included.
//   - A document whose kind is unknown, and was not before, keeps the objects of
//     its name that are gone from the file: a mistyped kind deletes nothing.
//   - If a document does not say which object it is about, every object that is
//     gone from the file is kept.
func (s *Source) parse(name string, data []byte, info fs.FileInfo, old *content) *content {
	c := &content{
		name: name, path: s.path(name), info: info, hash: sha256.Sum256(data),
		settled:  time.Since(info.ModTime()) > racyWindow,
		mistaken: map[configstore.ConfigKey][]configstore.ConfigKey{},
	}
	lost := map[configstore.ConfigKey]*claim{}
	if old != nil {
		for _, cl := range old.claims {
			if first, ok := lost[cl.key]; !ok || first.config == nil {
				lost[cl.key] = cl
			}
		}
	}
	last := func(key configstore.ConfigKey) *configstore.Config {
		if cl := lost[key]; cl != nil {
			return cl.config
		}
		return nil
	}
	opaque := false
	var strangers []manifest.Document
	for _, doc := range manifest.Parse(s.store.Schemas(), data, s.opts.manifest()) {
		if doc.Err != nil {
			c.errs = append(c.errs, documentError(c.path, doc))
		}
		switch {
		case doc.Err == nil:
			config := doc.Config
			// These two are the store's to set.
			config.ResourceVersion, config.Generation = "", 0
			c.claim(doc, doc.Key).good(&config, last(doc.Key))
		case errors.Is(doc.Err, configstore.ErrUnknownKind):
			strangers = append(strangers, doc)
		case doc.Key.Name != "":
			c.claim(doc, doc.Key).keep(last(doc.Key))
		default:
			opaque = true
		}
	}
	for _, cl := range c.claims {
		delete(lost, cl.key)
	}
	for _, doc := range strangers {
		c.keepMistaken(doc, old, lost)
	}
	if opaque {
		c.keepVaguely(lost)
	}
	return c
}

// claim adds a claim of a document.
func (c *content) claim(doc manifest.Document, key configstore.ConfigKey) *claim {
	return c.claimAt(Error{
		File: c.path, Document: doc.Number, Item: doc.Item, Line: doc.Line, Column: doc.Column, Object: key,
	}, doc.Position)
}

func (c *content) claimAt(place Error, position func(string) (int, int)) *claim {
	cl := &claim{content: c, sequence: len(c.claims), place: place, position: position, key: place.Object}
	c.claims = append(c.claims, cl)
	return cl
}

// keepMistaken keeps the objects that a document was about before its kind
// became unknown.
func (c *content) keepMistaken(doc manifest.Document, old *content, lost map[configstore.ConfigKey]*claim) {
	if doc.Key.Name == "" {
		return
	}
	var keys []configstore.ConfigKey
	if old != nil {
		before, seen := old.mistaken[doc.Key]
		keys = before
		if !seen {
			for key := range lost {
				if key.Name == doc.Key.Name && key.Namespace == doc.Key.Namespace {
					keys = append(keys, key)
				}
			}
		}
	}
	c.mistaken[doc.Key] = keys
	for _, key := range keys {
		if cl := lost[key]; cl != nil {
			c.claim(doc, key).keep(cl.config)
			delete(lost, key)
		}
	}
}

// keepVaguely keeps objects that a part of the file that cannot be read may be
// about.
func (c *content) keepVaguely(lost map[configstore.ConfigKey]*claim) {
	for _, cl := range lost {
		if cl.config != nil {
			kept := c.claimAt(cl.place, nil)
			kept.keep(cl.config)
			kept.vague = true
		}
	}
}

// unreadable returns the content of a file that cannot be read: what it held
// before. The error is nil if it is the file's directory that cannot be read.
func (s *Source) unreadable(name string, err error, old *content) *content {
	c := &content{name: name, path: s.path(name)}
	if err != nil {
		c.failure = &Error{File: c.path, Err: withoutPath(err)}
	}
	if old != nil {
		c.mistaken = old.mistaken
		for _, cl := range old.claims {
			kept := *cl
			kept.content, kept.stale, kept.vague, kept.refused = c, true, true, nil
			c.claims = append(c.claims, &kept)
		}
	}
	return c
}

// withoutPath takes the path out of an error that is reported with its file.
func withoutPath(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// documentError returns the error of a document at its most telling place.
func documentError(path string, doc manifest.Document) *Error {
	e := &Error{
		File: path, Document: doc.Number, Item: doc.Item, Line: doc.Line, Column: doc.Column,
		Object: doc.Key, Err: doc.Err,
	}
	var m *manifest.Error
	if errors.As(doc.Err, &m) && m.Problems[0].Line > 0 {
		e.Line, e.Column = m.Problems[0].Line, m.Problems[0].Column
	}
	return e
}

// same reports whether a file that was read again has not changed, and if so
// remembers its new times.
func (c *content) same(data []byte, info fs.FileInfo) bool {
	if c.failure != nil || c.hash != sha256.Sum256(data) {
		return false
	}
	c.info, c.settled, c.emptied = info, time.Since(info.ModTime()) > racyWindow, time.Time{}
	return true
}

// release frees what only the reload that parsed the file needed.
func (c *content) release() {
	for _, cl := range c.claims {
		cl.position = nil
	}
}
