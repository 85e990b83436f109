// SPDX-License-Identifier: Apache-2.0

package re2_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcher "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"

	"github.com/pilotkit/pilotkit/internal/envoycheck/re2"
	"github.com/pilotkit/pilotkit/internal/test/envoyproxy"
	"github.com/pilotkit/pilotkit/internal/test/tier"
)

// TestEnvoyAgrees compares Check with all supported releases, for the tables and for random
// expressions. All releases compile an accepted expression to a program below the limit. At least
// one rejects a rejected expression, except for repetitions of nothing, and for programs whose
// estimated size is too large; these have at least half of the limit. A limit of 0 makes Envoys
// report the program size.
func TestEnvoyAgrees(t *testing.T) {
	expressions := slices.Concat(accepted(), slices.Sorted(maps.Keys(refused())), classes())
	random := rand.New(rand.NewPCG(1, 2))
	for range tier.Share(2500) {
		if e := randomExpression(random, 1+random.IntN(6)); len(e) <= 1024 {
			expressions = append(expressions, e)
		}
	}
	sizes := make([]int, len(expressions)) // the largest; -1: one of them refuses it
	for _, program := range envoyproxy.Programs(t) {
		for i, size := range programSizes(t, program, expressions) {
			if size < 0 || sizes[i] < 0 {
				sizes[i] = -1
			} else {
				sizes[i] = max(sizes[i], size)
			}
		}
	}
	compiled := 0
	for i, e := range expressions {
		compiles := sizes[i] >= 0 && sizes[i] <= re2.MaxProgram
		if compiles {
			compiled++
		}
		switch err := re2.Check(e); {
		case err == nil && !compiles:
			t.Errorf("%.200q is accepted; Envoy: size %d", e, sizes[i])
		case err != nil && compiles && tier.Full() && // older releases refuse it
			!strings.Contains(err.Error(), "repetition size") && (!strings.Contains(err.Error(), "(estimated)") || sizes[i] < re2.MaxProgram/2):
			t.Errorf("%.200q is refused, %v; Envoy: size %d", e, err, sizes[i])
		}
	}
	if compiled < len(expressions)*2/5 {
		t.Errorf("only %d of %d expressions are compiled", compiled, len(expressions))
	}
}

// classes returns all classes that Go knows by name.
func classes() []string {
	var out []string
	for _, tables := range []map[string]*unicode.RangeTable{unicode.Categories, unicode.Scripts} {
		for _, name := range slices.Sorted(maps.Keys(tables)) {
			class := `\p{` + name + `}`
			if _, err := syntax.Parse(class, syntax.Perl); err == nil { // Go 1.26 does not find all.
				out = append(out, class)
			}
		}
	}
	return append(out, `\p{any}`, `\p{Letter}`, `\p{Lowercase_Letter}`, `\p{Unassigned}`, `\p{GREEK}`)
}

func programSizes(t *testing.T, program envoyproxy.Program, expressions []string) []int {
	t.Helper()
	routes := make([]*routev3.RouteConfiguration, len(expressions))
	for i, e := range expressions {
		routes[i] = &routev3.RouteConfiguration{
			Name: "r", VirtualHosts: []*routev3.VirtualHost{{Name: "v", Domains: []string{"*"}, Routes: []*routev3.Route{{
				Match:  &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_SafeRegex{SafeRegex: &matcher.RegexMatcher{Regex: e}}},
				Action: &routev3.Route_DirectResponse{DirectResponse: &routev3.DirectResponseAction{Status: 200}},
			}}}},
		}
	}
	size := regexp.MustCompile(`RE2 program size of (\d+) >`)
	out := make([]int, len(expressions))
	for i, verdict := range envoyproxy.RouteVerdicts(t, envoyproxy.Options{Program: program, Runtime: envoyproxy.RegexProgramSize(0)}, routes) {
		if m := size.FindStringSubmatch(verdict); m != nil {
			out[i], _ = strconv.Atoi(m[1])
		} else if verdict != "" {
			out[i] = -1
		}
	}
	return out
}

// randomExpression returns an expression of a depth; many of them are invalid.
func randomExpression(random *rand.Rand, depth int) string {
	pick := func(list ...string) string { return list[random.IntN(len(list))] }
	next := func() string { return randomExpression(random, depth-1) }
	switch n := random.IntN(20); {
	case depth == 0 || n < 6:
		if random.IntN(3) == 0 {
			return randomClass(random)
		}
		return randomCharacter(random)
	case n < 10:
		return next() + next()
	case n < 12:
		return next() + "|" + next()
	case n < 14:
		return "(" + pick("", "?:", "?i:", "?s:", "?U:", "?m:", fmt.Sprintf("?P<n%d>", random.IntN(100)), fmt.Sprintf("?<m%d>", random.IntN(100))) + next() + ")"
	case n < 15:
		return "(?:" + next() + "|)"
	case n < 16:
		return pick("^", "$", `\b`, `\B`, `\A`, `\z`, "(?i)", "(?s)", "(?m)", "(?U)") + next()
	default:
		return pick("(?:", "(") + next() + ")" + pick("*", "+", "?", "*?", "+?", "??", "{2}", "{0}", "{1}", "{2,5}", "{3,}", "{0,3}", "{0,}", "{7}", "{20}", "{0,30}", "{100}")
	}
}

func randomCharacter(random *rand.Rand) string {
	list := []string{
		"a", "b", "c", "x", "y", "k", "s", "0", "-", "_", "é", "ÿ", "ſ", "K", "一", "😀", `\x41`, `\xe9`, `\xff`, `\x{e9}`, `\x{100}`, `\101`, `\377`, `\400`,
		`\777`, `\07`, `\.`, `\/`, `\-`, `\n`, `\t`, `\x{0}`, `\\`, `\[`, `\]`, "/", ":", "=", "{", "}", " ", ",", `\Qa+b\E`, `\Q\\E`, `\x{10ffff}`,
	}
	return list[random.IntN(len(list))]
}

func randomClass(random *rand.Rand) string {
	pick := func(list ...string) string { return list[random.IntN(len(list))] }
	if random.IntN(2) == 0 {
		return pick(`\d`, `\w`, `\s`, `\D`, `\W`, `\S`, `\pL`, `\PL`, `\pN`, ".", "(?s:.)", `\p{Greek}`, `\P{Sm}`, `\p{^Lu}`, `\p{Letter}`)
	}
	var b strings.Builder
	b.WriteString("[" + pick("", "", "^"))
	for range 1 + random.IntN(4) {
		switch random.IntN(4) {
		case 0:
			b.WriteString(pick("[:alpha:]", "[:^digit:]", "[:word:]", "[:foo:]", `\d`, `\pN`, `\p{Lu}`, `\S`))
		case 1:
			b.WriteString(randomCharacter(random))
		default:
			b.WriteString(randomCharacter(random) + "-" + randomCharacter(random))
		}
	}
	return b.String() + "]"
}
