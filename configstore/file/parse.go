// SPDX-License-Identifier: Apache-2.0

package file

import (
	"crypto/sha256"
	"errors"
	"io/fs"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/manifest"
)

// hashes are those of the texts of a file. They stand for the file: it is hashed
// once.
type hashes [][sha256.Size]byte

func hash(texts []manifest.Text) hashes {
	out := make(hashes, len(texts))
	for i, t := range texts {
		out[i] = sha256.Sum256(t.Bytes)
	}
	return out
}

// common returns how many sections at the beginning and at the end have the texts
// with these hashes.
func (h hashes) common(sections []*section) (head, tail int) {
	n := min(len(sections), len(h))
	for head < n && sections[head].hash == h[head] {
		head++
	}
	for tail < n-head && sections[len(sections)-1-tail].hash == h[len(h)-1-tail] {
		tail++
	}
	return head, tail
}

// edit makes the content of a file that has changed out of the one before. What
// is the same at the beginning and at the end of the file is handed on untouched,
// and what has only moved in between is not read again.
//
// Documents that are bad keep what there was before of their objects:
//
//   - A document that names its object keeps that object, whatever else is
//     wrong with it, broken YAML included.
//   - A document whose kind is unknown, and was not before, keeps the objects of
//     its name that are gone from the file: a mistyped kind deletes nothing.
//   - If a document does not say which object it is about, and did not stand
//     there before, every object that is gone from the file is kept.
type edit struct {
	old, new *content
	// head and tail count the sections that are as before.
	head, tail int
	// lost are the claims, one for each object, that are neither in these
	// sections nor in those read so far.
	lost map[configstore.ConfigKey]*claim
	// opaque means that a document that was read may be about any object.
	opaque bool
	// mistaken and lostByName are made by the first document of an unknown kind
	// that was not there before: of those that were, what they were about, and
	// the keys of what is lost.
	mistaken   map[configstore.ConfigKey][]configstore.ConfigKey
	lostByName map[string][]configstore.ConfigKey
}

// parse makes the content of a file. old is nil if there was none.
func (s *Source) parse(name string, texts []manifest.Text, sums hashes, info fs.FileInfo, old *content) result {
	if old == nil {
		file := &fileName{name: name, path: s.path(name)}
		old = &content{file: file, rest: restOf(file)}
	}
	e := edit{old: old}
	// Which errors are kept, if they are many, must not depend on what was there
	// before: then everything is read.
	reused := !old.dropped
	if reused {
		e.head, e.tail = sums.common(old.sections)
		reused = s.edit(&e, texts, sums, e.between(old))
	}
	if !reused {
		e = edit{old: old}
		all := s.edit(&e, texts, sums, nil)
		e.new.dropped = !all
	}
	e.new.stamp(info)
	e.number(texts)
	e.keep()
	return result{content: e.new, gone: e.changed(old), added: e.changed(e.new)}
}

// edit finds or reads the section of every text; sections of moved, and those at
// the beginning and the end that are as before, need not be read. It reports
// whether there was room for all errors.
func (s *Source) edit(e *edit, texts []manifest.Text, sums hashes, moved []*section) bool {
	e.new = &content{file: e.old.file, sections: make([]*section, len(texts)), rest: restOf(e.old.file)}
	e.lose(s.index)
	r := reader{
		schemas: s.schemas, skipValidation: s.opts.SkipValidation, file: e.old.file,
		room: s.opts.MaxErrors, foreignRoom: s.opts.MaxErrors,
		seen: map[[sha256.Size]byte]*section{},
		last: func(key configstore.ConfigKey) *configstore.Config {
			if cl := e.lost[key]; cl != nil {
				return cl.config
			}
			return nil
		},
	}
	e.sections(&r, texts, sums, moved)
	e.opaque = r.opaque
	return r.room >= 0
}

// between returns the sections of a content that are not as before, or were not
// to be so.
func (e *edit) between(c *content) []*section { return c.sections[e.head : len(c.sections)-e.tail] }

// changed returns their claims, and those of the rest.
func (e *edit) changed(c *content) []*claim {
	var claims []*claim
	for _, s := range e.between(c) {
		claims = append(claims, s.claims...)
	}
	return append(claims, c.rest.claims...)
}

// lose finds the claims of the content before that may be lost.
func (e *edit) lose(x index) {
	e.lost = map[configstore.ConfigKey]*claim{}
	for _, cl := range e.changed(e.old) {
		if first, ok := e.lost[cl.key]; !ok || first.config == nil {
			e.lost[cl.key] = cl
		}
	}
	for key := range e.lost {
		for _, cl := range x.claims[key] {
			if cl.section.file == e.old.file && cl.section != e.old.rest && !e.isBetween(cl.section) {
				delete(e.lost, key)
			}
		}
	}
}

// isBetween reports whether a section of the content before is not as it was.
func (e *edit) isBetween(s *section) bool {
	return s.ordinal >= e.head && s.ordinal < len(e.old.sections)-e.tail
}

// sections finds or reads the section of every text.
func (e *edit) sections(r *reader, texts []manifest.Text, sums hashes, moved []*section) {
	n := len(texts)
	copy(e.new.sections, e.old.sections[:e.head])
	copy(e.new.sections[n-e.tail:], e.old.sections[len(e.old.sections)-e.tail:])
	for _, s := range e.new.sections {
		if s != nil {
			r.room -= s.size()
		}
	}
	byHash := map[[sha256.Size]byte][]*section{}
	for _, s := range moved {
		byHash[s.hash] = append(byHash[s.hash], s)
	}
	for i := e.head; i < n-e.tail; i++ {
		if same := byHash[sums[i]]; len(same) > 0 {
			e.new.sections[i], byHash[sums[i]] = same[0], same[1:]
			r.room -= same[0].size()
		} else {
			e.new.sections[i] = r.read(texts[i], sums[i])
		}
	}
	for _, s := range e.between(e.new) {
		for _, cl := range s.claims {
			delete(e.lost, cl.key)
		}
	}
}

// number gives the sections their places in the file.
func (e *edit) number(texts []manifest.Text) {
	documents := 0
	for i, s := range e.new.sections {
		s.ordinal, s.lines, s.documents = i, texts[i].Lines, documents
		documents += s.count
		if s.reports() {
			e.new.reported = append(e.new.reported, s)
		}
	}
}

// keep keeps those of the lost objects that a bad document may be about.
func (e *edit) keep() {
	opaque := false
	for _, s := range e.new.reported {
		opaque = opaque || s.opaque
		for _, f := range s.findings {
			if f.isStranger() && f.object.Name != "" {
				e.keepMistaken(s, f)
			}
		}
	}
	for _, cl := range e.lost {
		if cl.config != nil && (e.opaque || opaque && cl.vague) {
			kept := e.new.rest.claimAt(cl.at(), cl.key)
			kept.keep(cl.config)
			kept.vague = true
		}
	}
}

// keepMistaken keeps the objects that a document was about before its kind became
// unknown.
func (e *edit) keepMistaken(s *section, f *finding) {
	if !f.matched {
		f.matched, f.before = true, e.before(f.object)
	}
	f.holds = false
	for _, key := range f.before {
		if cl := e.lost[key]; cl != nil && cl.config != nil {
			at := f.place
			at.line, at.document = at.line+s.lines, at.document+s.documents
			e.new.rest.claimAt(at, key).keep(cl.config)
			delete(e.lost, key)
			f.holds = true
		}
	}
}

// before returns which objects a document of an unknown kind was about. One that
// was there before, of the same kind, is about the same.
func (e *edit) before(object configstore.ConfigKey) []configstore.ConfigKey {
	if e.mistaken == nil {
		e.mistaken = map[configstore.ConfigKey][]configstore.ConfigKey{}
		for _, s := range e.old.reported {
			for _, f := range s.findings {
				if f.isStranger() {
					e.mistaken[f.object] = f.before
				}
			}
		}
		e.lostByName = map[string][]configstore.ConfigKey{}
		for key := range e.lost {
			e.lostByName[key.Name] = append(e.lostByName[key.Name], key)
		}
	}
	if keys, ok := e.mistaken[object]; ok {
		return keys
	}
	var keys []configstore.ConfigKey
	for _, key := range e.lostByName[object.Name] {
		// Without a schema, no default namespace is applied.
		if key.Namespace == object.Namespace || object.Namespace == "" {
			keys = append(keys, key)
		}
	}
	return keys
}

// unreadable returns the content of a file that cannot be read: what it held
// before. The error is nil if it is the file's directory that cannot be read.
func (s *Source) unreadable(name string, err error, old *content) result {
	file := &fileName{name: name, path: s.path(name)}
	c := &content{file: file, rest: restOf(file)}
	if err != nil {
		c.failure = &Error{File: file.path, Err: withoutPath(err)}
	}
	r := result{content: c}
	if old != nil {
		c.reported = old.reported
		for cl := range old.claims() {
			kept := c.rest.claimAt(cl.at(), cl.key)
			kept.keep(cl.config)
			kept.vague = true
			r.gone = append(r.gone, cl)
		}
	}
	r.added = c.rest.claims
	return r
}

// withoutPath takes the path out of an error that is reported with its file.
func withoutPath(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
