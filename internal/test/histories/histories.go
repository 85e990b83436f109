// SPDX-License-Identifier: Apache-2.0

// Package histories is the one knob of tests that follow random histories: how many they
// follow, and which.
package histories

import (
	"bufio"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/pilotkit/pilotkit/internal/test/tier"
)

// The environment variables of this package; ./test.sh -histories sets the first.
const (
	countVariable = "PILOTKIT_HISTORIES" // how many histories each test follows, in any tier
	seedVariable  = "PILOTKIT_SEED"      // the only seed to follow
)

// Seeds returns the seeds of the histories that a test follows: first the seeds that failed before,
// from testdata/seeds/TestName.txt, one in a line; then 0, 1, and so on, up to the tier's share of
// full. PILOTKIT_HISTORIES=1000 follows that many instead, and PILOTKIT_SEED=7 only that one.
func Seeds(tb testing.TB, full int) []uint64 {
	tb.Helper()
	if only, given := number(tb, seedVariable); given {
		return []uint64{only}
	}
	seeds, count := failed(tb), uint64(tier.Share(full))
	if given, ok := number(tb, countVariable); ok {
		count = given
	}
	for seed := range count {
		seeds = append(seeds, seed)
	}
	return seeds
}

func number(tb testing.TB, variable string) (value uint64, given bool) {
	tb.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return 0, false
	}
	value, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		tb.Fatalf("%s=%s is not a number", variable, text)
	}
	return value, true
}

func failed(tb testing.TB) (seeds []uint64) {
	tb.Helper()
	name, _, _ := strings.Cut(tb.Name(), "/")
	file, err := os.Open(filepath.Join("testdata", "seeds", name+".txt"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		tb.Fatal(err)
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		seed, err := strconv.ParseUint(lines.Text(), 10, 64)
		if err != nil {
			tb.Fatalf("%s: %v", file.Name(), err)
		}
		seeds = append(seeds, seed)
	}
	return seeds
}
