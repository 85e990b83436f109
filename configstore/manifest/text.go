// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"cmp"
	"fmt"

	"github.com/pilotkit/pilotkit/configstore"
)

// Text is the text of one document of an input. Each is read on its own, so that a caller can hold
// one document at a time, and can skip unchanged texts: texts of equal bytes hold equal documents.
type Text struct {
	// Bytes is the text, which is a part of the input.
	Bytes []byte
	// Lines is the number of lines of the input above the text.
	Lines int

	in *input
}

// input is the state shared by the texts of one input.
type input struct {
	schemas configstore.Schemas
	opts    Options
	// budget is the remaining number of nodes and bytes that aliases may expand to. locating is the
	// remaining number of bytes that may be read again to locate errors.
	budget, locating int
}

// budgetBase and budgetFactor give the budget of an input by its size.
const (
	budgetBase   = 1 << 18
	budgetFactor = 1
)

// Texts cuts an input into the texts of its documents, which follow each other
// without a gap. The error is an *Error that matches ErrMalformed, if the input
// is larger than the options allow; then there are no texts. The texts of one
// input must not be read concurrently.
func Texts(schemas configstore.Schemas, data []byte, opts Options) ([]Text, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if limit := cmp.Or(opts.MaxBytes, DefaultMaxBytes); limit >= 0 && len(data) > limit {
		return nil, tooMuch("the input has %d bytes, which is more than the limit of %d", len(data), limit)
	}
	s := splitter{limit: cmp.Or(opts.MaxDocuments, DefaultMaxDocuments)}
	s.split(data)
	if s.full() {
		return nil, tooMuch("the input has more than %d documents", s.limit)
	}
	in := &input{schemas: schemas, opts: opts, budget: budgetBase + budgetFactor*len(data), locating: maxLocating}
	for i := range s.texts {
		s.texts[i].in = in
	}
	return s.texts, nil
}

func tooMuch(format string, args ...any) error {
	return &Error{Problems: []Problem{{Message: fmt.Sprintf(format, args...)}}, cause: ErrMalformed}
}

// Parse reads the text as Parse reads an input: numbers and lines count from its
// beginning. count is the number of documents in it, which is that of the last
// one, unless that is an empty List: mostly 1, and 0 if the text is empty.
func (t Text) Parse() (docs []Document, count int) {
	p := parser{in: t.in}
	p.text(Text{Bytes: t.Bytes})
	return p.docs, p.number
}

// body returns the text without the lines up to its "---", if that stands alone
// on its line.
func (t Text) body() Text {
	rest, line := t.Bytes, t.Lines
	for text := range bytes.Lines(t.Bytes) {
		if !isPreamble(text) && !isMarker(text, "---") {
			break
		}
		rest, line = rest[len(text):], line+1
		if isMarker(text, "---") {
			if len(bytes.TrimSpace(text)) > len("---") {
				break
			}
			return Text{Bytes: rest, Lines: line}
		}
	}
	return t
}

// splitter collects the texts of an input, up to one more than the limit.
type splitter struct {
	limit int
	texts []Text
}

func (s *splitter) full() bool { return s.limit >= 0 && len(s.texts) > s.limit }

// split cuts an input at its "---" and "..." lines, so that a document that is
// broken does not hide those behind it. YAML 1.2 §9.1.4 forbids such lines
// inside of any document. Text above a "---" that holds no content (comments,
// directives) stays with the document that the marker opens.
func (s *splitter) split(data []byte) {
	start, startLine, content := 0, 0, false
	for pos, line := 0, 0; pos < len(data) && !s.full(); line++ {
		end := len(data)
		if i := bytes.IndexByte(data[pos:], '\n'); i >= 0 {
			end = pos + i + 1
		}
		text := data[pos:end]
		switch {
		case content && text[0] != '-' && text[0] != '.': // most lines
		case isMarker(text, "..."):
			s.add(Text{Bytes: data[start:end], Lines: startLine})
			start, startLine, content = end, line+1, false
		case !isMarker(text, "---"):
			content = content || !isPreamble(text)
		case content:
			s.add(Text{Bytes: data[start:pos], Lines: startLine})
			start, startLine = pos, line
		default:
			content = true
		}
		pos = end
	}
	if start < len(data) {
		s.add(Text{Bytes: data[start:], Lines: startLine})
	}
}

// add appends a text, cut between the JSON objects that it may hold if they begin
// on lines of their own.
func (s *splitter) add(t Text) {
	for rest := t.body().Bytes; isJSON(rest) && !s.full(); {
		end := jsonEnd(rest)
		if end < 0 {
			break
		}
		rest = rest[end:]
		next := len(rest) - len(bytes.TrimLeft(rest, " \t\r\n"))
		if newline := bytes.LastIndexByte(rest[:next], '\n'); newline >= 0 && next < len(rest) {
			rest = rest[newline+1:]
			cut := len(t.Bytes) - len(rest)
			s.texts = append(s.texts, Text{Bytes: t.Bytes[:cut], Lines: t.Lines})
			t = Text{Bytes: rest, Lines: t.Lines + bytes.Count(t.Bytes[:cut], []byte("\n"))}
		}
	}
	s.texts = append(s.texts, t)
}

// isMarker reports whether a line begins ("---") or ends ("...") a document.
func isMarker(line []byte, marker string) bool {
	rest, ok := bytes.CutPrefix(line, []byte(marker))
	return ok && (len(rest) == 0 || bytes.IndexByte([]byte(" \t\r\n"), rest[0]) >= 0)
}

// isPreamble reports whether a line may stand above the marker of its own
// document: blank lines, comments and directives.
func isPreamble(line []byte) bool {
	line = bytes.TrimSpace(line)
	return len(line) == 0 || line[0] == '#' || line[0] == '%'
}

func isJSON(text []byte) bool {
	text = bytes.TrimLeft(text, " \t\r\n")
	return len(text) > 0 && text[0] == '{'
}

// jsonEnd returns where the JSON object that a text begins with ends, or -1 if
// the text is no JSON, judging by its quotes.
func jsonEnd(text []byte) int {
	depth, quoted, last := 0, false, byte(0)
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted, c == ' ', c == '\t', c == '\r', c == '\n':
			continue
		case c == '\'', c == '#', c == ':' && last != '"':
			return -1
		case c == '{', c == '[':
			depth++
		case c == '}', c == ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
		last = c
	}
	return -1
}
