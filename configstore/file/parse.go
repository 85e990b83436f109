// SPDX-License-Identifier: Apache-2.0

package file

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"io/fs"
	"slices"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/manifest"
)

// hash returns the hashes of texts. They stand for the file: it is hashed once.
func hash(texts []manifest.Text) [][sha256.Size]byte {
	out := make([][sha256.Size]byte, len(texts))
	for i, t := range texts {
		out[i] = sha256.Sum256(t.Bytes)
	}
	return out
}

// edit derives the content of a changed file from the previous content. It reads and validates new
// documents only; documents that were in the file before are not read again, even if they have
// moved.
//
// Bad documents keep the previous state of their objects:
//
//   - A document with a readable identity keeps that object, regardless of its other errors,
//     including broken YAML.
//   - A document whose kind is unknown, and was not before, keeps the objects of
//     its name that are gone from the file: a mistyped kind deletes nothing.
//   - If a document does not say which object it is about, and did not stand
//     there before, every object that is gone from the file is kept.
type edit struct {
	schemas        configstore.Schemas
	skipValidation bool
	old, new       *content
	// gone are the sections that were removed from the file, added are the new ones, and moved are
	// other sections with a changed order.
	gone, added, moved []*section
	// lost are the definitions, one for each object, that are missing from the sections that the
	// file still has and, after all texts have been read, from the new sections.
	lost map[configstore.ConfigKey]*definition
	// ambiguous means that a document that was read may be about any object of the file.
	ambiguous bool
	// unknownBefore and lostByName are built for the first new document of an unknown kind.
	// unknownBefore has the objects of the documents that were of an unknown kind before, and
	// lostByName the keys of the lost objects.
	unknownBefore map[configstore.ConfigKey][]configstore.ConfigKey
	lostByName    map[string][]configstore.ConfigKey
}

// parse makes the content of a file. old is nil if there was none.
func (s *Source) parse(name string, texts []manifest.Text, sums [][sha256.Size]byte, info fs.FileInfo, old *content) result {
	if old == nil {
		file := &fileName{name: name, path: s.path(name)}
		old = &content{file: file, rest: restOf(file)}
	}
	e := edit{schemas: s.schemas, skipValidation: s.opts.SkipValidation, old: old, new: &content{file: old.file, rest: restOf(old.file)}}
	e.match(sums)
	e.findLost(s.index)
	for i, section := range e.new.sections {
		if section == nil {
			section = e.read(texts[i], sums[i])
			e.new.sections[i] = section
			e.added = append(e.added, section)
		}
	}
	for _, section := range e.added {
		for _, def := range section.definitions {
			delete(e.lost, def.key)
		}
	}
	e.new.stamp(info)
	e.number(texts)
	e.keep()
	return result{
		content: e.new,
		gone:    definitionsOf(append(append(e.gone, e.moved...), old.rest)),
		added:   definitionsOf(append(append(e.added, e.moved...), e.new.rest)),
	}
}

// match finds the sections of the texts that the file had before. Others stay nil.
func (e *edit) match(sums [][sha256.Size]byte) {
	before := make(map[[sha256.Size]byte]*section, len(e.old.sections))
	for _, s := range slices.Backward(e.old.sections) {
		before[s.hash], s.sameText = s, before[s.hash]
	}
	e.new.sections = make([]*section, len(sums))
	last := -1
	for i, sum := range sums {
		s := before[sum]
		if s == nil {
			continue
		}
		e.new.sections[i], before[sum], s.sameText = s, s.sameText, nil
		if s.ordinal < last {
			e.moved = append(e.moved, s)
		}
		last = max(last, s.ordinal)
	}
	for _, s := range before {
		for ; s != nil; s = s.sameText {
			e.gone = append(e.gone, s)
		}
	}
}

func definitionsOf(sections []*section) []*definition {
	var definitions []*definition
	for _, s := range sections {
		definitions = append(definitions, s.definitions...)
	}
	return definitions
}

// findLost finds the definitions of the content before that may be lost.
func (e *edit) findLost(x index) {
	e.lost = map[configstore.ConfigKey]*definition{}
	slices.SortFunc(e.gone, func(a, b *section) int { return cmp.Compare(a.ordinal, b.ordinal) })
	gone := map[*section]bool{e.old.rest: true}
	for _, s := range e.gone {
		gone[s] = true
	}
	for _, def := range definitionsOf(append(slices.Clip(e.gone), e.old.rest)) {
		if first, ok := e.lost[def.key]; !ok || first.config == nil {
			e.lost[def.key] = def
		}
	}
	for key := range e.lost {
		for _, def := range x.definitions[key] {
			if def.section.file == e.old.file && !gone[def.section] {
				delete(e.lost, key)
			}
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

// keep keeps each lost object that a bad document may define.
func (e *edit) keep() {
	ambiguous := false
	for _, s := range e.new.reported {
		ambiguous = ambiguous || s.ambiguous
		for _, f := range s.findings {
			if f.isUnknownKind() && f.object.Name != "" {
				e.keepUnknownKind(s, f)
			}
		}
	}
	for _, def := range e.lost {
		if def.config != nil && (e.ambiguous || ambiguous && def.unconfirmed) {
			kept := e.new.rest.defineAt(def.at(), def.key)
			kept.keep(def.config)
			kept.unconfirmed = true
		}
	}
}

// keepUnknownKind keeps the objects that a document was about before its kind became
// unknown.
func (e *edit) keepUnknownKind(s *section, f *finding) {
	if !f.matched {
		f.matched, f.before = true, e.before(f.object)
	}
	f.retains = false
	for _, key := range f.before {
		if def := e.lost[key]; def != nil && def.config != nil {
			at := f.position
			at.line, at.document = at.line+s.lines, at.document+s.documents
			e.new.rest.defineAt(at, key).keep(def.config)
			delete(e.lost, key)
			f.retains = true
		}
	}
}

// before returns which objects a document of an unknown kind was about. One that
// was there before, of the same kind, is about the same.
func (e *edit) before(object configstore.ConfigKey) []configstore.ConfigKey {
	if e.unknownBefore == nil {
		e.unknownBefore = map[configstore.ConfigKey][]configstore.ConfigKey{}
		for _, s := range e.old.reported {
			for _, f := range s.findings {
				if f.isUnknownKind() {
					e.unknownBefore[f.object] = f.before
				}
			}
		}
		e.lostByName = map[string][]configstore.ConfigKey{}
		for key := range e.lost {
			e.lostByName[key.Name] = append(e.lostByName[key.Name], key)
		}
	}
	if keys, ok := e.unknownBefore[object]; ok {
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

// unreadable returns the content of an unreadable file, which is its previous content. err is nil
// if not the file but its directory cannot be read.
func (s *Source) unreadable(name string, err error, old *content) result {
	file := &fileName{name: name, path: s.path(name)}
	c := &content{file: file, rest: restOf(file)}
	if err != nil {
		c.failure = &Error{File: file.path, Err: withoutPath(err)}
	}
	r := result{content: c}
	if old != nil {
		c.reported = old.reported
		r.gone = old.definitions()
		for _, def := range r.gone {
			kept := c.rest.defineAt(def.at(), def.key)
			kept.keep(def.config)
			kept.unconfirmed = true
		}
	}
	r.added = c.rest.definitions
	return r
}

// withoutPath takes the path out of an error that is reported with its file.
func withoutPath(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}
