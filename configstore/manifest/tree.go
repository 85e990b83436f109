// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/pilotkit/pilotkit/internal/guard"
)

// maxNodes is the largest number of nodes that a document may have, judging by
// its punctuation. The tree of a document takes up to 200 bytes a node.
const maxNodes = 4 << 20

// trees returns the roots of the documents in a text, and the problem that ended
// the reading of it, if any, whose line counts from the beginning of the text.
// Empty documents are left out.
func (p *parser) trees(t Text) ([]*yaml.Node, *Problem) {
	if !utf8.Valid(t.Bytes) {
		return nil, &Problem{Line: invalidLine(t.Bytes), Message: "is not UTF-8 text"}
	}
	if len(t.Bytes) > maxNodes/2 && countNodes(t.Bytes) > maxNodes {
		return nil, &Problem{Line: 1, Message: fmt.Sprintf("has more than %d nodes", maxNodes)}
	}
	if body := t.body(); isJSON(body.Bytes) {
		// Text that is not JSON may still be YAML in flow style.
		if roots, err := jsonTrees(body.Bytes, 1+body.Lines-t.Lines); err == nil {
			return roots, nil
		}
	}
	roots, message := parseYAML(t.Bytes)
	if message == "" {
		return roots, nil
	}
	return roots, &Problem{Line: p.errorLine(t.Bytes, message), Message: "is not valid YAML: " + message}
}

// countNodes returns an upper bound for the number of nodes of a text: each line may hold a scalar,
// each colon separates two, and in flow style each comma and bracket begins a pair of nodes, which
// may be incomplete.
func countNodes(text []byte) int {
	n := 1
	for i, c := range text {
		switch c {
		case '\n', ':', '?':
			n++
		case ',', '[', '{':
			n += 2
		case '-':
			if i+1 == len(text) || text[i+1] == ' ' || text[i+1] == '\n' {
				n++
			}
		}
	}
	return n
}

// invalidLine returns the number of the first line that is not UTF-8.
func invalidLine(text []byte) int {
	line := 1
	for l := range bytes.Lines(text) {
		if !utf8.Valid(l) {
			break
		}
		line++
	}
	return line
}

// parseYAML returns the roots of the documents in a text, and an error message without the line.
func parseYAML(text []byte) (roots []*yaml.Node, message string) {
	// go.yaml.in/yaml/v3 panics on some inputs that its parser did not foresee.
	defer func() {
		if p := guard.Recovered(recover()); p != nil {
			message = fmt.Sprint(p.Value)
		}
	}()
	dec := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var doc yaml.Node
		err := dec.Decode(&doc)
		if errors.Is(err, io.EOF) {
			return roots, ""
		}
		if err != nil {
			return roots, withoutLine(err.Error())
		}
		if doc.Kind != yaml.DocumentNode || len(doc.Content) == 0 {
			continue
		}
		if root := doc.Content[0]; !isNull(root) {
			roots = append(roots, root)
		}
	}
}

// withoutLine takes the line out of a message of the YAML parser.
func withoutLine(message string) string {
	message = strings.TrimPrefix(message, "yaml: ")
	if rest, ok := strings.CutPrefix(message, "line "); ok {
		number, text, found := strings.Cut(rest, ": ")
		if _, err := strconv.Atoi(number); found && err == nil {
			return text
		}
	}
	return message
}

// maxLocated is the maximum size of a text for locating errors. maxLocating bounds the total size
// of the texts of an input that are read again to locate errors.
const (
	maxLocated  = 1 << 20
	maxLocating = 16 << 20
)

// errorLine returns the line where the error with this message begins. The line in the YAML
// parser's own message is of little use: usually it is the first line of the innermost mapping, and
// often it is off by one. errorLine therefore searches for the shortest prefix that fails in the
// same way.
func (p *parser) errorLine(text []byte, message string) int {
	if len(text) > maxLocated || p.in.locating < 0 {
		return 1
	}
	var ends []int
	end := 0
	for line := range bytes.Lines(text) {
		end += len(line)
		ends = append(ends, end)
	}
	return 1 + sort.Search(len(ends)-1, func(i int) bool {
		p.in.locating -= ends[i]
		_, got := parseYAML(text[:ends[i]])
		return got == message
	})
}

// jsonTrees reads a text as a sequence of JSON values, and makes the same nodes as a YAML parser.
// JSON has its own reader because YAML 1.1 parsers reject parts of it, such as surrogate pairs.
// line is the number of the first line.
func jsonTrees(text []byte, line int) ([]*yaml.Node, error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	b := jsonBuilder{dec: dec, text: text, line: line}
	var roots []*yaml.Node
	for {
		root, err := b.value(0)
		if errors.Is(err, io.EOF) {
			return roots, nil
		}
		if err != nil {
			return nil, err
		}
		if !isNull(root) {
			roots = append(roots, root)
		}
	}
}

// jsonBuilder makes nodes of JSON tokens.
type jsonBuilder struct {
	dec  *json.Decoder
	text []byte
	// pos is the offset up to which lines were counted. lineStart is the offset of the start of the
	// line that contains pos.
	pos, line, lineStart int
}

// errTooDeep leaves the verdict to the YAML parser's tree, which the decoder
// walks with a limit of its own.
var errTooDeep = errors.New("nested too deeply")

func (b *jsonBuilder) value(depth int) (*yaml.Node, error) {
	if depth > maxDepth+1 {
		return nil, errTooDeep
	}
	node := b.position()
	token, err := b.dec.Token()
	if err != nil {
		return nil, err
	}
	switch t := token.(type) {
	case json.Delim:
		err := b.children(node, t, depth)
		if errors.Is(err, io.EOF) {
			// Token says the same within a value as after the last one.
			err = io.ErrUnexpectedEOF
		}
		return node, err
	case string:
		node.Kind, node.Tag, node.Value, node.Style = yaml.ScalarNode, "!!str", t, yaml.DoubleQuotedStyle
	case json.Number:
		node.Kind, node.Tag, node.Value, node.Style = yaml.ScalarNode, "!!float", t.String(), yaml.TaggedStyle
	case bool:
		node.Kind, node.Tag, node.Value = yaml.ScalarNode, "!!bool", strconv.FormatBool(t)
	default:
		node.Kind, node.Tag, node.Value = yaml.ScalarNode, "!!null", "null"
	}
	return node, nil
}

func (b *jsonBuilder) children(node *yaml.Node, open json.Delim, depth int) error {
	node.Kind, node.Tag = yaml.MappingNode, "!!map"
	if open == '[' {
		node.Kind, node.Tag = yaml.SequenceNode, "!!seq"
	}
	for b.dec.More() {
		child, err := b.value(depth + 1)
		if err != nil {
			return err
		}
		node.Content = append(node.Content, child)
		if node.Kind == yaml.MappingNode {
			if child, err = b.value(depth + 1); err != nil {
				return err
			}
			node.Content = append(node.Content, child)
		}
	}
	_, err := b.dec.Token()
	return err
}

// position returns a node at the place of the next token.
func (b *jsonBuilder) position() *yaml.Node {
	at := int(b.dec.InputOffset())
	for at < len(b.text) && bytes.IndexByte([]byte(" \t\r\n,:"), b.text[at]) >= 0 {
		at++
	}
	for ; b.pos < at; b.pos++ {
		if b.text[b.pos] == '\n' {
			b.line++
			b.lineStart = b.pos + 1
		}
	}
	return &yaml.Node{Line: b.line, Column: utf8.RuneCount(b.text[b.lineStart:at]) + 1}
}
