// SPDX-License-Identifier: Apache-2.0

package configstore

import (
	"maps"
	"slices"
	"strconv"
	"unicode/utf8"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/pilotkit/pilotkit/internal/excerpt"
)

// TextRule is a rule for the content of a string. All strings of all objects must be UTF-8, as
// protobuf demands: a message with an invalid string cannot be encoded.
type TextRule int

const (
	// TextAny allows every character.
	TextAny TextRule = iota
	// TextLine allows no control characters, which are those below U+0020 and
	// U+007F: the string becomes a name, a path, an authority, an address, or
	// something else that ends where its line does.
	TextLine
	// TextHeaderValue is TextLine with tabs, which the values of HTTP headers may
	// have.
	TextHeaderValue
)

// problem describes how s breaks the rule, or returns "".
func (r TextRule) problem(s string) string {
	switch {
	case !utf8.ValidString(s):
		return "must be UTF-8"
	case r != TextAny && hasControl(s, r == TextHeaderValue):
		return "must not hold control characters"
	default:
		return ""
	}
}

func hasControl(s string, tabs bool) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && (c != '\t' || !tabs) || c == 0x7f {
			return true
		}
	}
	return false
}

// checkText checks the strings of an object against the rules of its kind. unread is Unread of the spec,
// and sound is false if the object cannot be encoded. Nearly every object is plain text, which
// plainMessage finds out without a path to any field; the rest is walked.
func (s *Schema) checkText(c *Config) (violations, unread []Violation, sound bool) {
	plainSpec := plainMessage(c.Spec)
	plainStatus := c.Status == nil || plainMessage(c.Status)
	if plainSpec && plainStatus && c.plain() {
		return nil, nil, true
	}
	w := textWalk{rule: s.Text}
	w.metadata(&c.Meta)
	if !plainSpec {
		w.message(c.Spec.ProtoReflect(), &textPlace{name: "spec"}, nil, 0)
		unread = w.unread.list()
	}
	if !plainStatus {
		w.rule = nil
		w.message(c.Status.ProtoReflect(), &textPlace{name: "status"}, nil, 0)
	}
	return w.out.list(), unread, !w.broken
}

// metadata checks that the identifying fields of an object are single lines. Annotations may be
// longer texts: kubectl keeps whole manifests in one.
func (w *textWalk) metadata(m *Meta) {
	root := &textPlace{name: "metadata"}
	w.check(TextLine, m.Name, root.child("name"), false)
	w.check(TextLine, m.Namespace, root.child("namespace"), false)
	w.check(TextLine, m.UID, root.child("uid"), false)
	w.check(TextLine, m.Domain, &textPlace{name: "domain"}, false)
	w.check(TextLine, m.ResourceVersion, root.child("resourceVersion"), false)
	w.strings(m.Labels, root.child("labels"), TextLine)
	w.strings(m.Annotations, root.child("annotations"), TextAny)
	for i, owner := range m.OwnerReferences {
		at := root.child("ownerReferences").child("[" + strconv.Itoa(i) + "]")
		w.check(TextLine, owner.APIVersion, at.child("apiVersion"), false)
		w.check(TextLine, owner.Kind, at.child("kind"), false)
		w.check(TextLine, owner.Name, at.child("name"), false)
		w.check(TextLine, owner.UID, at.child("uid"), false)
	}
}

// plain reports whether all strings are plain text.
func (m *Meta) plain() bool {
	for _, owner := range m.OwnerReferences {
		if !isPlain(owner.APIVersion) || !isPlain(owner.Kind) || !isPlain(owner.Name) || !isPlain(owner.UID) {
			return false
		}
	}
	return isPlain(m.Name) && isPlain(m.Namespace) && isPlain(m.UID) && isPlain(m.Domain) && isPlain(m.ResourceVersion) &&
		isPlainMap(m.Labels) && isPlainMap(m.Annotations)
}

// strings checks a map of the metadata.
func (w *textWalk) strings(texts map[string]string, at *textPlace, values TextRule) {
	for _, key := range slices.Sorted(maps.Keys(texts)) {
		place := at.child("[" + excerpt.Name(key) + "]")
		w.check(TextLine, key, place, true)
		w.check(values, texts[key], place, false)
	}
}

// check reports a string, or the key of a map, that breaks rule.
func (w *textWalk) check(rule TextRule, s string, at *textPlace, key bool) {
	if isPlain(s) {
		return
	}
	problem := rule.problem(s)
	if problem == "" {
		return
	}
	w.broken = w.broken || !utf8.ValidString(s)
	subject := ""
	if key {
		subject = "key "
	}
	w.out.add(func() Violation {
		return Violation{Field: at.String(), Message: excerpt.Sprintf("%s%s, is %q", subject, problem, s)}
	})
}

// ruleOf returns the rule for the strings of a field. fd is nil for strings outside of a message.
func (w *textWalk) ruleOf(fd protoreflect.FieldDescriptor) TextRule {
	if w.rule == nil || fd == nil {
		return TextAny
	}
	return w.rule(fd)
}
