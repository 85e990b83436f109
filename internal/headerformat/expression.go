// SPDX-License-Identifier: Apache-2.0

package headerformat

import (
	"strconv"
	"strings"

	"github.com/pilotkit/pilotkit/internal/cel"
	"github.com/pilotkit/pilotkit/internal/re2"
)

// Envoy's limits for a CEL expression.
const (
	maxHeight  = 32
	maxProgram = 100
)

// expression checks a CEL expression. Envoy resolves all functions when it parses the expression,
// and supports neither loop macros nor text functions beyond the standard ones.
func expression(text string) error {
	e, err := cel.Parse(text)
	switch {
	case err != nil:
		return refused("Not able to parse expression: %v", err)
	case largeNumber(text):
		return refused("invalid int literal")
	case e.Height > maxHeight:
		return refused("Expression recursion limit exceeded. limit: %d", maxHeight)
	case e.Messages:
		return refused("must not build messages")
	case e.QuotedNames:
		return refused("unsupported syntax '`', by releases of Envoy before 1.40")
	}
	for _, c := range e.Calls {
		if err := checkCall(c); err != nil {
			return err
		}
	}
	return nil
}

// largeNumber reports whether a text contains 2⁶³, which the grammar cannot distinguish from its
// negative.
func largeNumber(text string) bool {
	return strings.Contains(text, "9223372036854775808") || strings.Contains(strings.ToLower(text), "0x8000000000000000")
}

func checkCall(c cel.Call) error {
	if c.Function == "has" && !c.Method && c.Arguments == 1 {
		if !c.Selects {
			return refused("has() argument must be a field selection")
		}
		return nil
	}
	if !isFunction(c) {
		return refused("No overload found in reference resolve step for %s", c.Function)
	}
	if c.Function != "matches" || c.Literal == "" {
		return nil
	}
	pattern, ok := textOf(c.Literal)
	if !ok {
		return refused("the regular expression must be a text without escapes, or with those of Go")
	}
	if err := re2.CheckSize(pattern, maxProgram); err != nil {
		return refused("invalid regular expression: %v", err)
	}
	return nil
}

// isFunction reports whether a function with this name and number of arguments exists.
func isFunction(c cel.Call) bool {
	method := 0
	if c.Method {
		method = 1
	}
	switch c.Function {
	case "size":
		return c.Arguments == 1-method
	case "contains", "startsWith", "endsWith", "matches":
		return c.Arguments == 2-method
	case "timestamp", "duration", "int", "uint", "double", "bool", "bytes", "type", "dyn":
		return !c.Method && c.Arguments == 1
	case "getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear", "getFullYear", "getHours", "getMilliseconds",
		"getMinutes", "getMonth", "getSeconds":
		return c.Method && c.Arguments <= 1
	case "extract":
		return c.Qualifier == "re" && c.Arguments == 3
	case "capture", "captureN":
		return c.Qualifier == "re" && c.Arguments == 2
	default:
		return false
	}
}

// textOf returns the text of a literal. ok is false if it has escapes that Go does not have.
func textOf(literal string) (text string, ok bool) {
	prefix := literal[:strings.IndexAny(literal, `'"`)]
	quoted := literal[len(prefix):]
	quote := quoted[:1]
	if strings.HasPrefix(quoted, strings.Repeat(quote, 3)) {
		quote = strings.Repeat(quote, 3)
	}
	text = quoted[len(quote) : len(quoted)-len(quote)]
	if strings.EqualFold(prefix, "r") || prefix == "" && !strings.Contains(text, `\`) {
		return text, true
	}
	if prefix != "" || quote != `"` {
		return "", false
	}
	text, err := strconv.Unquote(quoted)
	return text, err == nil
}
