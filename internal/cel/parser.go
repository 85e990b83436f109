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

// Check returns nil if the text is one expression. Otherwise the error reports the place of the
// first mistake and the tokens expected there.
func Check(text string) error {
	_, err := Parse(text)
	return err
}

// Parse returns the structure of an expression. Its error is that of Check.
func Parse(text string) (Expression, error) {
	p := parser{lexer: lexer{text: text}}
	p.advance()
	p.found.Height = p.expression().height
	p.expect(tokenEnd)
	return p.found, p.err
}

// parser is a recursive descent: one method for each rule of the grammar. After
// the first error every token is the end, which ends all loops.
type parser struct {
	lexer
	token token
	depth int
	err   error
	found Expression
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
func (p *parser) expression() operand {
	if p.depth++; p.depth > maxDepth {
		p.fail(errTooDeep)
	}
	defer func() { p.depth-- }()
	if p.err != nil {
		return operand{}
	}
	x := p.binary()
	if p.take("?") {
		y := p.binary()
		p.expect(":")
		return above(x, y, p.expression())
	}
	return x
}

// binary = unary { operator unary }. Precedence is irrelevant to validity, because all operators
// are binary and stand between two operands.
func (p *parser) binary() operand {
	var b binary
	for {
		b.add(p.unary())
		switch p.token {
		case "||", "&&":
			b.logical()
			p.advance()
		case "<", "<=", ">=", ">", "==", "!=", tokenIn, "+", "-", "*", "/", "%":
			b.operators++
			p.advance()
		default:
			return b.operand()
		}
	}
}

// unary = ( { "!" } | { "-" } ) member.
func (p *parser) unary() operand {
	sign := token("-")
	if p.token == "!" {
		sign = "!"
	}
	signs := 0
	for p.take(sign) {
		signs++
	}
	x := p.member()
	if signs > 0 {
		// Two signs cancel out.
		return above(x)
	}
	return x
}

// member = primary { "." selector [ "(" list ")" ] | "[" expression "]" }.
func (p *parser) member() operand {
	x := p.primary()
	for {
		switch {
		case p.take("."):
			x = p.selector(x)
		case p.take("["):
			x = above(x, p.expression())
			p.expect("]")
		default:
			return x
		}
	}
}

// selector = name [ "(" list ")" ] | quoted name. Fields may be called by reserved
// words, methods too.
func (p *parser) selector(of operand) operand {
	if p.takeQuoted() {
		return operand{height: of.height + 1, selection: true}
	}
	name := p.text[p.pos:p.end]
	p.expect(tokenIdent)
	if p.take("(") {
		return p.call(Call{Function: name, Method: true}, of.height)
	}
	return operand{height: of.height + 1, selection: true}
}

// primary = [ "." ] name [ "(" list ")" ] | [ "." ] name { "." name } "{" fields "}"
// | "(" expression ")" | "[" list "]" | "{" entries "}" | literal.
func (p *parser) primary() operand {
	literal := p.text[p.pos:p.end]
	switch {
	case p.take(tokenNumber), p.take(tokenLiteral):
		return operand{height: 1}
	case p.take(tokenText):
		return operand{height: 1, literal: literal}
	case p.take("-"): // the sign of a number, after "!"
		p.expect(tokenNumber)
		return operand{height: 2}
	case p.take("("):
		x := p.expression()
		p.expect(")")
		x.height++
		return x
	case p.take("["):
		return above(p.series("]", p.expression)...)
	case p.take("{"):
		return above(p.series("}", p.entry)...)
	case p.token == ".", p.token == tokenIdent:
		p.take(".")
		return p.name()
	default:
		p.failExpected("an expression")
		return operand{}
	}
}

// name parses a variable, a call, or a message. Those three begin alike; what
// follows the dots of a name decides.
func (p *parser) name() operand {
	if p.token == tokenIdent && isReserved(p.text[p.pos:p.end]) {
		p.fail(fmt.Errorf("column %d: %s is a reserved word", p.pos+1, p.text[p.pos:p.end]))
	}
	c := Call{Function: p.text[p.pos:p.end]}
	p.expect(tokenIdent)
	for dots := 0; ; dots++ {
		switch {
		case p.take("("):
			return p.call(c, dots)
		case p.take("{"):
			p.found.Messages = true
			return above(p.series("}", p.field)...)
		case p.token == ".":
			p.advance()
			if p.takeQuoted() {
				return operand{height: dots + 2, selection: true}
			}
			c.Qualifier, c.Function, c.Method = c.full(), p.text[p.pos:p.end], true
			p.expect(tokenIdent)
		default:
			return operand{height: dots + 1, selection: dots > 0}
		}
	}
}

// call parses the arguments of a call and the closing parenthesis. height is that of the method's
// receiver.
func (p *parser) call(c Call, height int) operand {
	arguments := p.series(")", p.expression)
	if c.Arguments = len(arguments); c.Arguments > 0 {
		last := arguments[c.Arguments-1]
		c.Selects, c.Literal = last.selection, last.literal
	}
	if p.err == nil {
		p.found.Calls = append(p.found.Calls, c)
	}
	return above(append(arguments, operand{height: height})...)
}

func (p *parser) takeQuoted() bool {
	if !p.take(tokenQuoted) {
		return false
	}
	p.found.QuotedNames = true
	return true
}

// series = [ element { "," element } ] [ "," ] and the token at its end. Arguments
// have no comma at their end.
func (p *parser) series(end token, element func() operand) []operand {
	var out []operand
	for first := true; p.err == nil && !p.take(end); first = false {
		if !first {
			p.expect(",")
		}
		switch {
		case end == ")":
			out = append(out, element())
		case first && p.take(","), p.token == end:
			p.expect(end)
			return out
		default:
			out = append(out, element())
		}
	}
	return out
}

// entry = expression ":" expression.
func (p *parser) entry() operand {
	key := p.expression()
	p.expect(":")
	return above(key, p.expression())
}

// field = ( name | quoted name ) ":" expression.
func (p *parser) field() operand {
	if !p.takeQuoted() {
		p.expect(tokenIdent)
	}
	p.expect(":")
	return above(p.expression())
}
