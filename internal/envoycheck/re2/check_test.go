// SPDX-License-Identifier: Apache-2.0

package re2_test

import (
	"strings"
	"testing"

	"github.com/pilotkit/pilotkit/internal/envoycheck/re2"
)

// accepted returns expressions that all supported releases compile.
func accepted() []string {
	return []string{
		"a", "/api/v[0-9]{1,3}/[a-zA-Z0-9_-]{1,64}/items", `\d+\.\w*\s?`, `\D\W\S`, "[[:alpha:][:^digit:]]", "[^a-z]", ".", "(?s).", "(?i)straße",
		`\pL`, `\PN`, `\p{Lu}`, `\p{^Greek}`, `\P{Han}`, `\p{Any}`, `[\p{Nd}a-f]`, `\xe9`, `\x{e9}`, `\x{ff}`, `\377`, `\07`, "é", "[é]", "[à-é]", `[a-é]`, `\Q\p{Letter}\E`, `\Qa+`, `\\p{Letter}`,
		"(?P<name>a)", "(?<name>a)", "a{1000}", "(?:a{10}){100}", `\A\bab\B\z`, "(?i:a)(?-s:.)", "|", "a||b", "x{,5}", "[]a]", "^*",
		strings.Repeat("a", 1024), `\pL{24}`, "[^a]{1000}", strings.Repeat("a{1000}", 32), strings.Repeat("(", 300) + "a" + strings.Repeat(")", 300),
	}
}

// refused returns expressions that at least one of the releases does not compile, each with its
// error.
func refused() map[string]string {
	return map[string]string{
		"(":              "missing closing )",
		"a**":            "invalid nested repetition operator",
		"(?=a)":          "invalid or unsupported Perl syntax",
		"a{1001}":        "invalid repeat count",
		`\p{Letter}`:     "invalid character class range: `\\p{Letter}`",
		`a\P{ASCII}b`:    "`\\P{ASCII}`",
		`\p{Cn}`:         "`\\p{Cn}`",
		`[\p{LC}]`:       "`\\p{LC}`",
		`\p{greek}`:      "`\\p{greek}`",
		`\p{^Assigned}`:  "`\\p{^Assigned}`",
		`\x{100}`:        "invalid escape sequence: `\\x{100}`",
		`[a-\x{10ffff}]`: "`\\x{10ffff}`",
		`\400`:           "`\\400`",
		`[\xff-é]`:       "invalid character class range",
		`[\xe9-é]`:       "as Latin-1, which Envoy 1.40 reads: error parsing regexp: invalid character class range",
		`(?:\pL{100})`:   "RE2 program size of 131072 > max program size of 32768 (estimated)",

		"(?:(?:a{100}){0}){30}":        "invalid repetition size",
		strings.Repeat("a{1000}", 140): "RE2 program size of",
		strings.Repeat(`\pL`, 340):     "RE2 program size of",
	}
}

func TestCheck(t *testing.T) {
	for _, expression := range accepted() {
		if err := re2.Check(expression); err != nil {
			t.Errorf("%q: %v", expression, err)
		}
	}
	for expression, want := range refused() {
		if err := re2.Check(expression); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", expression, err, want)
		}
	}
	if err := re2.CheckSize("/api/v[0-9]{1,3}/[a-zA-Z0-9_-]{1,64}/items", 100); err == nil || !strings.Contains(err.Error(), "> max program size of 100") {
		t.Error(err)
	}
}

// FuzzCheck: Check does not panic.
func FuzzCheck(f *testing.F) {
	for _, expression := range accepted() {
		f.Add(expression)
	}
	for expression := range refused() {
		f.Add(expression)
	}
	f.Fuzz(func(t *testing.T, expression string) {
		if len(expression) <= 1024 && re2.Check(expression) == nil && re2.Check("(?:"+expression+")") != nil && !strings.Contains(expression, `\Q`) {
			t.Errorf("%q is refused in parentheses", expression)
		}
	})
}
