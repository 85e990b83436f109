// SPDX-License-Identifier: Apache-2.0

// Package tier tells a test how much of it is to run.
//
// There are three tiers. The short one (go test -short) is for use during development. The default
// one must pass for every change, and checks each property in one way. The full one
// (PILOTKIT_TESTS=full, which ./test.sh -full sets) adds second checks, long random histories,
// further releases, protocols and clients, and soak tests.
package tier

import (
	"hash/fnv"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// variable is the environment variable that selects the full tier.
const variable = "PILOTKIT_TESTS"

// Full reports whether the full tier runs.
func Full() bool { return os.Getenv(variable) == "full" && !testing.Short() }

// OnlyFull skips the test outside the full tier. The reason describes the skipped test: ./test.sh
// lists it at its end.
func OnlyFull(tb testing.TB, reason string) {
	tb.Helper()
	if !Full() {
		tb.Skipf("only with -full: %s", reason)
	}
}

// NotShort skips the test in the short tier.
func NotShort(tb testing.TB, reason string) {
	tb.Helper()
	if testing.Short() {
		tb.Skipf("not with -short: %s", reason)
	}
}

// Share returns how many of n repetitions run: all in the full tier, a tenth by default, and a
// thirtieth in the short tier, but at least one.
func Share(n int) int { return max(1, n/Divisor()) }

// Divisor returns what Share divides by.
func Divisor() int {
	switch {
	case Full():
		return 1
	case testing.Short():
		return 30
	default:
		return 10
	}
}

// dayVariable is the environment variable that chooses the sample of another day, counted from 1970.
const dayVariable = "PILOTKIT_DAY"

// Sampled reports whether one case of many runs: all do in the full tier, otherwise one in n,
// others each day.
func Sampled(tb testing.TB, name string, n int) bool {
	tb.Helper()
	if Full() {
		return true
	}
	day := uint64(time.Now().Unix() / int64(24*60*60))
	if given := os.Getenv(dayVariable); given != "" {
		var err error
		if day, err = strconv.ParseUint(given, 10, 32); err != nil {
			tb.Fatalf("%s=%s is not a number of days", dayVariable, given)
		}
	}
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(name))
	return (hash.Sum64()%uint64(n)+day)%uint64(n) == 0
}

// Sample skips the test unless it is Sampled.
func Sample(tb testing.TB, n int) {
	tb.Helper()
	if name, _, _ := strings.Cut(tb.Name(), "/"); !Sampled(tb, name, n) {
		tb.Skipf("only with -full, or another day: one in %d runs", n)
	}
}
