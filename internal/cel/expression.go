// SPDX-License-Identifier: Apache-2.0

package cel

import "math/bits"

// Expression describes the structure of an expression, as far as the grammar determines it.
type Expression struct {
	// Height is how deep the operations nest, or more: which operators bind tighter is
	// not looked at. Parentheses count.
	Height int
	// Calls are the calls of functions, methods and macros, inner ones first.
	Calls []Call
	// Messages: it builds a message. QuotedNames: a name is in backquotes.
	Messages, QuotedNames bool
}

// Call is a call of a function or a macro, or of a method: which of the two "a.b(c)"
// calls the grammar does not tell.
type Call struct {
	Function string
	// Qualifier is what stands before the function's dot if it is names only.
	Qualifier string
	// Method: there is a dot before the function.
	Method    bool
	Arguments int
	// Selects: the last argument selects a field. Literal is the last argument if it is a
	// text, as it is written.
	Selects bool
	Literal string
}

// full returns the function with its qualifier.
func (c Call) full() string {
	if c.Qualifier == "" {
		return c.Function
	}
	return c.Qualifier + "." + c.Function
}

// operand is a part of an expression.
type operand struct {
	height    int
	selection bool
	literal   string
}

// above is an operation on operands.
func above(operands ...operand) operand {
	height := 0
	for _, o := range operands {
		height = max(height, o.height)
	}
	return operand{height: height + 1}
}

// binary is a series of operands with operators between them. Logical operators are balanced, as in
// the language's own parsers; a run of other operators is as high as it is long.
type binary struct {
	first operand
	// height and operators are of the run of operators that are not logical.
	height, operators int
	// highest is that of the runs before, which are parts.
	highest, parts int
	count          int
}

func (b *binary) add(o operand) {
	if b.count++; b.count == 1 {
		b.first = o
	}
	b.height = max(b.height, o.height)
}

// logical ends a run.
func (b *binary) logical() {
	b.highest = max(b.highest, b.height+b.operators)
	b.height, b.operators = 0, 0
	b.parts++
}

func (b *binary) operand() operand {
	if b.count == 1 {
		return b.first
	}
	b.logical()
	height := b.highest
	if b.parts > 1 {
		// In the worst case there is a tree of each of the two operators above the other.
		height += 2 * bits.Len(uint(b.parts-1))
	}
	return operand{height: height}
}
