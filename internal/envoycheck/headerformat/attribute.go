// SPDX-License-Identifier: Apache-2.0

package headerformat

import "strings"

// maxNames bounds the names of an attribute, because Envoy bounds the depth of an expression by 32.
const maxNames = 16

// attribute checks the argument of the command CEL. Envoy accepts any CEL expression whose functions it
// knows. This package has no CEL parser and accepts only an attribute, such as request.path, or one
// entry of it, such as request.headers['x-user'].
func attribute(text string) error {
	path, key, hasKey := strings.Cut(text, "[")
	names := strings.Split(path, ".")
	if len(names) > maxNames {
		return refused("an attribute has at most %d names", maxNames)
	}
	for _, name := range names {
		if !isIdentifier(name) {
			return refused("only attributes are supported in CEL, such as request.headers['x-user']")
		}
	}
	if hasKey && !isKey(key) {
		return refused("the key of an attribute must be a quoted text followed by a bracket, such as ['x-user']")
	}
	return nil
}

// isKey reports whether text, which follows an opening bracket, is a quoted text and the closing bracket.
func isKey(text string) bool {
	text, closed := strings.CutSuffix(text, "]")
	if !closed || len(text) < 2 || text[0] != text[len(text)-1] || text[0] != '\'' && text[0] != '"' {
		return false
	}
	for _, c := range []byte(text[1 : len(text)-1]) {
		if c <= ' ' || c > '~' || strings.IndexByte(`'"\[]()%`, c) >= 0 {
			return false
		}
	}
	return true
}

// isIdentifier reports whether CEL takes a name for an identifier.
func isIdentifier(name string) bool {
	for i, c := range []byte(name) {
		letter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	switch name {
	case "", "as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in", "let", "loop", "namespace",
		"null", "package", "return", "true", "var", "void", "while":
		return false
	default:
		return true
	}
}
