// SPDX-License-Identifier: Apache-2.0

package cel

import "strings"

// token is a class of lexical elements. The operators and delimiters are tokens
// by their own text.
type token string

const (
	tokenEnd     token = "the end"
	tokenIdent   token = "a name"
	tokenQuoted  token = "a quoted name"
	tokenNumber  token = "a number"
	tokenText    token = "a text"
	tokenLiteral token = "a literal" // true, false, null
	tokenIn      token = "in"
)

// lexer finds the tokens of a text, one after the other.
type lexer struct {
	text string
	// pos is where the token begins that next returned last, end where it ends.
	pos, end int
}

// next returns the token that follows. ok is false for what begins no token.
func (l *lexer) next() (t token, ok bool) {
	l.skipBlanks()
	rest := l.text[l.pos:]
	if rest == "" {
		l.end = l.pos
		return tokenEnd, true
	}
	var n int
	switch c := rest[0]; {
	case textStart(rest) > 0:
		t, n = tokenText, textLength(rest)
	case isLetter(c):
		t, n = word(rest)
	case isDigit(c), c == '.' && len(rest) > 1 && isDigit(rest[1]):
		t, n = tokenNumber, numberLength(rest)
	case c == '`':
		t, n = tokenQuoted, quotedLength(rest)
	default:
		t, n = operator(rest)
	}
	l.end = l.pos + n
	return t, n > 0
}

// skipBlanks moves to the next token, over blanks and comments.
func (l *lexer) skipBlanks() {
	l.pos = l.end
	for l.pos < len(l.text) {
		switch rest := l.text[l.pos:]; {
		case strings.IndexByte("\t\n\f\r ", rest[0]) >= 0:
			l.pos++
		case strings.HasPrefix(rest, "//"):
			if line := strings.IndexByte(rest, '\n'); line >= 0 {
				l.pos += line
			} else {
				l.pos = len(l.text)
			}
		default:
			return
		}
	}
}

func operator(s string) (t token, n int) {
	for _, operator := range []token{
		"==", "!=", "<=", ">=", "&&", "||",
		"<", ">", "+", "-", "*", "/", "%", "!", "?", ":", ".", ",", "(", ")", "[", "]", "{", "}",
	} {
		if strings.HasPrefix(s, string(operator)) {
			return operator, len(operator)
		}
	}
	return "", 0
}

// word returns the name, literal or operator that s begins with.
func word(s string) (t token, n int) {
	for n < len(s) && (isLetter(s[n]) || isDigit(s[n])) {
		n++
	}
	switch s[:n] {
	case "true", "false", "null":
		return tokenLiteral, n
	case "in":
		return tokenIn, n
	default:
		return tokenIdent, n
	}
}

// isReserved knows the words that are no names of variables, though fields may
// be called so.
func isReserved(name string) bool {
	switch name {
	case "as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop",
		"package", "namespace", "return", "var", "void", "while":
		return true
	default:
		return false
	}
}

// quotedLength returns the length of a name in backquotes, or 0.
func quotedLength(s string) int {
	n := 1
	for n < len(s) && (isLetter(s[n]) || isDigit(s[n]) || strings.IndexByte(".-/ ", s[n]) >= 0) {
		n++
	}
	if n == 1 || n == len(s) || s[n] != '`' {
		return 0
	}
	return n + 1
}

func isLetter(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_' }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isHex(c byte) bool { return isDigit(c) || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F' }
