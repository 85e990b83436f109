// SPDX-License-Identifier: Apache-2.0

package wrapper_test

import (
	"fmt"
	"testing"

	"github.com/pilotkit/pilotkit/internal/test/testmain"
	"github.com/pilotkit/pilotkit/internal/wrapper"
)

// named is a leaf.
type named string

func (n named) String() string { return string(n) }

// one wraps a Stringer, or nil.
type one struct{ inner fmt.Stringer }

func (o one) Unwrap() fmt.Stringer { return o.inner }

// many wraps several things.
type many []any

func (m many) Unwrap() []any { return m }

// failed wraps something else than is looked for.
type failed struct{ error }

func (failed) Unwrap() error { return nil }

func TestMain(m *testing.M) { testmain.Verify(m) }

func TestAs(t *testing.T) {
	for name, tt := range map[string]struct {
		thing any
		want  named
	}{
		"itself":             {named("a"), "a"},
		"wrapped":            {one{wrapped{one{named("a")}}}, "a"},
		"the first of many":  {many{1, nil, many{}, one{named("a")}, named("b")}, "a"},
		"many within one":    {one{wrapped{many{named("a")}}}, "a"},
		"nil":                {nil, ""},
		"nil within":         {one{}, ""},
		"another wrapper":    {failed{}, ""},
		"no wrapper at all":  {1, ""},
		"none of many wraps": {many{1, one{}}, ""},
	} {
		got, ok := wrapper.As[named, fmt.Stringer](tt.thing)
		if got != tt.want || ok != (tt.want != "") {
			t.Errorf("%s: As = %q, %t, want %q", name, got, ok, tt.want)
		}
	}
}

// wrapped is a Stringer that passes Unwrap on to a part that is none.
type wrapped struct{ part any }

func (wrapped) String() string { return "" }

func (w wrapped) Unwrap() []any { return []any{w.part} }
