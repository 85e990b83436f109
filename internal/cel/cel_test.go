// SPDX-License-Identifier: Apache-2.0

package cel_test

import (
	"strings"
	"testing"

	"github.com/pilotkit/pilotkit/internal/cel"
	"github.com/pilotkit/pilotkit/internal/test/testmain"
)

func TestMain(m *testing.M) { testmain.Verify(m) }

// expressions are of CEL, by rule of the grammar.
func expressions() []string {
	return []string{
		"a", ".a", "a.b.c", "a.if", "_a1", "true", "null", "a.`b-c/d.e`",
		"1", "0x1F", "1u", "0xFFu", "18446744073709551615u", "9223372036854775807", "-9223372036854775808",
		"1.5", ".5", "1e3", "1.5E-3", "1 .a", "1.e5",
		`"a"`, `'a'`, `r"\d"`, `R'\'`, `b"a"`, `BR"\x"`, `""`, `""""""`, "'''a\n'b'''", `"\a\b\f\n\r\t\v\\\?\"\'` + "\\`" + `"`,
		`"\x41\X41\u0041\U00000041\101"`, `b"\xff\377"`, `"é"`,
		"a()", "a(b, c)", "a.b(c)", "a.b().c[0]", "a[b][c]", "has(a.b)",
		"[]", "[1, 2]", "[1,]", "[,]", "{}", "{'a': 1, b: [2]}", "{1: 2,}",
		"a{}", "a.b{c: 1, `d`: 2,}", ".a.b{}", "a{if: 1}",
		"!a", "!!a", "-a", "--a", "!-1", "-1", "- 1", "a - -1",
		"a || b && c == d + e * f", "a in [b]", "a ? b : c ? d : e", "a < b", "(a)", "(a ? b : c) ? d : e",
		" a // comment", "// comment\na", "a\t==\r\n\fb",
		`response.code >= 400 || (has(request.headers["x"]) && size(request.path) > 1u)`,
		strings.Repeat("(", 200) + "a" + strings.Repeat(")", 200),
	}
}

// others are not, each for a reason of its own.
func others() []string {
	return []string{
		"", " ", "// a", "a b", "a;", "1a", "a.", "a..b", "a.1", ".", ".1a", "if", "as(b)", "in", "a.in", "a.true",
		"0x", "9223372036854775809", "18446744073709551616u", "1e999", "1u2",
		`"a`, `'a"`, "'a\n'", `"\q"`, `"\x4"`, `"\u004"`, `"\ud800"`, `"\U00110000"`, `"\400"`, `"\08"`, `b"\u0041"`, `"\`, `rb"a"`, "'''a''", "`a`", "a.`b",
		"a(", "a(b", "a(b,)", "a(,)", "a[", "a[]", "a[b", "(", "()", "(a", "[1 2]", "[1,,]", "{1}", "{1:}", "{a: 1", "a{1: 2}", "a{b}", "(a){}", "a(){}",
		"!", "-", "!-a", "-!a", "a !b", "a = b", "a === b", "a & b", "a | b", "a <", "< a", "a ? b", "a ? b :", "a : b", "a ? b ? c : d : e",
		"a.?b", "a[?b]", "@", "#", "a\x00", "\xff", "and", "a and b"[1:], "é",
		strings.Repeat("(", 300) + "a" + strings.Repeat(")", 300),
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for _, text := range expressions() {
		if err := cel.Check(text); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, text := range others() {
		if text == "and" {
			continue // a name like any other
		}
		if cel.Check(text) == nil {
			t.Errorf("%q is taken for an expression", text)
		}
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a ==":    "column 5: expected an expression, found the end",
		"a b":     `column 3: expected the end, found "b"`,
		"a(b":     `column 4: expected ",", found the end`,
		"a == 'b": `column 6: "'b" begins nothing of CEL`,
		"if":      "column 1: if is a reserved word",
	} {
		if err := cel.Check(text); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// FuzzCheck: nothing panics or runs for ever, parentheses change nothing, and two
// expressions with an operator between them are one.
func FuzzCheck(f *testing.F) {
	for _, text := range append(expressions(), others()...) {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		err := cel.Check(text)
		if strings.Contains(text, "//") || strings.Count(text, "(")+strings.Count(text, "[")+strings.Count(text, "{")+strings.Count(text, "?") > 200 {
			return // additional text would be part of a comment, or one level too much
		}
		if wrapped := cel.Check("(" + text + ")"); (err == nil) != (wrapped == nil) && !strings.ContainsAny(text, "()") {
			t.Errorf("%q: %v, in parentheses %v", text, err, wrapped)
		}
		if err == nil {
			if err := cel.Check("[" + text + ", " + text + "]"); err != nil {
				t.Errorf("twice in a list: %v", err)
			}
		}
	})
}
