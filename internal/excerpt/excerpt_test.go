// SPDX-License-Identifier: Apache-2.0

package excerpt_test

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pilotkit/pilotkit/internal/excerpt"
	"github.com/pilotkit/pilotkit/internal/test/testmain"
)

func TestMain(m *testing.M) { testmain.Verify(m) }

func TestCut(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", excerpt.Limit+1)
	for _, tt := range []struct{ in, want string }{
		{"", ""},
		{long[1:], long[1:]},
		{long, long[1:] + "... (257 bytes)"},
		{long[2:] + "ü", long[2:] + "... (257 bytes)"},
		{long[1:] + "\xff", long[1:] + "... (257 bytes)"},
		{strings.Repeat("\xbf", 400), strings.Repeat("\xbf", excerpt.Limit-4) + "... (400 bytes)"},
	} {
		if got := excerpt.Cut(tt.in); got != tt.want {
			t.Errorf("Cut(%q) = %q, want %q", tt.in, got, tt.want)
		}
	}
}

func TestName(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"app.kubernetes.io/name":  "app.kubernetes.io/name",
		"a b":                     "a b",
		"Überschrift":             "Überschrift",
		"a\nb":                    `"a\nb"`,
		"a\xffb":                  `"a\xffb"`,
		"\u202e":                  `"\u202e"`,
		strings.Repeat("\n", 400): `"` + strings.Repeat(`\n`, excerpt.Limit) + `... (400 bytes)"`,
	} {
		if got := excerpt.Name(in); got != want {
			t.Errorf("Name(%q) = %s, want %s", in, got, want)
		}
	}
}

func TestSprintf(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 1000)
	cut := excerpt.Cut(long)
	got := excerpt.Sprintf("%d %q %v %s", 1, long, errors.New(long), excerpt.Phrase(long))
	if want := `1 "` + cut + `" ` + cut + " " + long; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// FuzzCut: an excerpt is bounded, begins as the text does, and cuts no character.
func FuzzCut(f *testing.F) {
	f.Add("a", 3)
	f.Add(strings.Repeat("ü", 100), 7)
	f.Fuzz(func(t *testing.T, s string, limit int) {
		limit = min(max(limit, 0), 1000)
		got := excerpt.CutTo(s, limit)
		if len(s) <= limit {
			if got != s {
				t.Errorf("%q becomes %q", s, got)
			}
			return
		}
		if head := got[:strings.LastIndex(got, "...")]; len(head) > limit || !strings.HasPrefix(s, head) {
			t.Errorf("%q becomes %q", s, got)
		}
		if utf8.ValidString(s) && !utf8.ValidString(got) {
			t.Errorf("%q becomes %q, which is no UTF-8", s, got)
		}
	})
}
