// SPDX-License-Identifier: Apache-2.0

package manifest

import "bytes"

// chunk is the text of one document.
type chunk struct {
	text []byte
	// line is the number of lines of the input above the text.
	line int
}

// body returns the document without the lines up to its "---", if that stands
// alone on its line.
func (c chunk) body() chunk {
	rest, line := c.text, c.line
	for text := range bytes.Lines(c.text) {
		if !isPreamble(text) && !isMarker(text, "---") {
			break
		}
		rest, line = rest[len(text):], line+1
		if isMarker(text, "---") {
			if len(bytes.TrimSpace(text)) > len("---") {
				break
			}
			return chunk{text: rest, line: line}
		}
	}
	return c
}

// split cuts an input at its "---" and "..." lines, so that a document that is
// broken does not hide those behind it. YAML 1.2 §9.1.4 forbids such lines
// inside of any document. Text above a "---" that holds no content (comments,
// directives) stays with the document that the marker opens.
func split(data []byte) []chunk {
	var chunks []chunk
	start, startLine, content := 0, 0, false
	for pos, line := 0, 0; pos < len(data); line++ {
		end := len(data)
		if i := bytes.IndexByte(data[pos:], '\n'); i >= 0 {
			end = pos + i + 1
		}
		text := data[pos:end]
		switch {
		case isMarker(text, "..."):
			chunks = append(chunks, chunk{text: data[start:end], line: startLine})
			start, startLine, content = end, line+1, false
		case !isMarker(text, "---"):
			content = content || !isPreamble(text)
		case content:
			chunks = append(chunks, chunk{text: data[start:pos], line: startLine})
			start, startLine = pos, line
		default:
			content = true
		}
		pos = end
	}
	if start < len(data) {
		chunks = append(chunks, chunk{text: data[start:], line: startLine})
	}
	return chunks
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
