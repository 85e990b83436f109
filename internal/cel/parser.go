// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"errors"
	"fmt"
	"strconv"
)

// maxDepth bounds how deep expressions nest, as the language's own parser does.
const maxDepth = 250

// errTooDeep says that an expression nests deeper than maxDepth.
var errTooDeep = errors.New("nests too deep")

// Check returns nil if the text is one expression, else an error that says where
// it stops being one and what would have been right there.
func Check(text string) error {
	p := parser{lexer: lexer{text: text}}
	p.advance()
	p.expression()
	p.expect(tokenEnd)
	return p.err
}

// parser is a recursive descent: one method for each rule of the grammar. After
// the first error every token is the end, which ends all loops.
type parser struct {
	lexer
	token token
	depth int
	err   error
}

func (p *parser) advance() {
	token, ok := p.next()
	if !ok {
		p.fail(fmt.Errorf("column %d: %.20q begins nothing of CEL", p.pos+1, p.text[p.pos:]))
		return
	}
	if p.err == nil {
		p.token = token
	}
}

func (p *parser) fail(err error) {
	if p.err == nil {
		p.err = err
	}
	p.token = tokenEnd
}

func (p *parser) failExpected(what token) {
	found := string(p.token)
	if len(what) <= len("in") {
		what = token(strconv.Quote(string(what)))
	}
	if p.token != tokenEnd {
		found = fmt.Sprintf("%.20q", p.text[p.pos:p.end])
	}
	p.fail(fmt.Errorf("column %d: expected %s, found %s", p.pos+1, what, found))
}

// take moves over the token if it is the given one.
func (p *parser) take(t token) bool {
	if p.err != nil || p.token != t {
		return false
	}
	if t != tokenEnd {
		p.advance()
	}
	return true
}

func (p *parser) expect(t token) {
	if !p.take(t) {
		p.failExpected(t)
	}
}

// expression = or [ "?" or ":" expression ].
func (p *parser) expression() {
	if p.depth++; p.depth > maxDepth {
		p.fail(errTooDeep)
	}
	defer func() { p.depth-- }()
	if p.err != nil {
		return
	}
	p.binary()
	if p.take("?") {
		p.binary()
		p.expect(":")
		p.expression()
	}
}

// binary = unary { operator unary }. Which operators bind tighter makes no
// difference to what is an expression: all are binary and stand between two
// operands.
func (p *parser) binary() {
	for {
		p.unary()
		switch p.token {
		case "||", "&&", "<", "<=", ">=", ">", "==", "!=", tokenIn, "+", "-", "*", "/", "%":
			p.advance()
		default:
			return
		}
	}
}

// unary = ( { "!" } | { "-" } ) member.
func (p *parser) unary() {
	sign := token("-")
	if p.token == "!" {
		sign = "!"
	}
	for p.take(sign) {
	}
	p.member()
}

// member = primary { "." selector [ "(" list ")" ] | "[" expression "]" }.
func (p *parser) member() {
	p.primary()
	for {
		switch {
		case p.take("."):
			p.selector()
		case p.take("["):
			p.expression()
			p.expect("]")
		default:
			return
		}
	}
}

// selector = name [ "(" list ")" ] | quoted name. Fields may be called by reserved
// words, methods too.
func (p *parser) selector() {
	if p.take(tokenQuoted) {
		return
	}
	p.expect(tokenIdent)
	if p.take("(") {
		p.series(")", p.expression)
	}
}

// primary = [ "." ] name [ "(" list ")" ] | [ "." ] name { "." name } "{" fields "}"
// | "(" expression ")" | "[" list "]" | "{" entries "}" | literal.
func (p *parser) primary() {
	switch {
	case p.take(tokenNumber), p.take(tokenText), p.take(tokenLiteral):
	case p.take("-"): // the sign of a number, after "!"
		p.expect(tokenNumber)
	case p.take("("):
		p.expression()
		p.expect(")")
	case p.take("["):
		p.series("]", p.expression)
	case p.take("{"):
		p.series("}", p.entry)
	case p.token == ".", p.token == tokenIdent:
		p.take(".")
		p.name()
	default:
		p.failExpected("an expression")
	}
}

// name parses a variable, a call, or a message. Those three begin alike; what
// follows the dots of a name decides.
func (p *parser) name() {
	if p.token == tokenIdent && isReserved(p.text[p.pos:p.end]) {
		p.fail(fmt.Errorf("column %d: %s is a reserved word", p.pos+1, p.text[p.pos:p.end]))
	}
	p.expect(tokenIdent)
	for {
		switch {
		case p.take("("):
			p.series(")", p.expression)
			return
		case p.take("{"):
			p.series("}", p.field)
			return
		case p.token == ".":
			p.advance()
			if p.take(tokenQuoted) {
				return
			}
			p.expect(tokenIdent)
		default:
			return
		}
	}
}

// series = [ element { "," element } ] [ "," ] and the token at its end. Arguments
// have no comma at their end.
func (p *parser) series(end token, element func()) {
	for first := true; p.err == nil && !p.take(end); first = false {
		if !first {
			p.expect(",")
		}
		switch {
		case end == ")":
			element()
		case first && p.take(","), p.token == end:
			p.expect(end)
			return
		default:
			element()
		}
	}
}

// entry = expression ":" expression.
func (p *parser) entry() {
	p.expression()
	p.expect(":")
	p.expression()
}

// field = ( name | quoted name ) ":" expression.
func (p *parser) field() {
	if !p.take(tokenQuoted) {
		p.expect(tokenIdent)
	}
	p.expect(":")
	p.expression()
}
