// SPDX-License-Identifier: Apache-2.0

package testmain

import (
	"bytes"
	"os"
	"os/exec"
	"strconv"
	"testing"
)

// limitVariable names the environment variable with the upper bound for the sizes of
// internal/limit.
const limitVariable = "PILOTKIT_LIMIT"

// IsLowered reports whether the sizes are lowered, for tests that check the way to a result.
func IsLowered() bool { return os.Getenv(limitVariable) != "" }

// Lowered runs the tests that match a pattern, as for -run, in processes of their own in
// which no size of internal/limit is more than 1, and then 3. A test that does no more than
// call it is skipped in them.
func Lowered(t *testing.T, pattern string) {
	t.Helper()
	if IsLowered() {
		t.Skip("the sizes are lowered already")
	}
	for _, most := range []int{1, 3} {
		t.Run(strconv.Itoa(most), func(t *testing.T) {
			t.Parallel()
			args := []string{"-test.run=" + pattern}
			if testing.Short() {
				args = append(args, "-test.short")
			}
			cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
			cmd.Env = append(os.Environ(), limitVariable+"="+strconv.Itoa(most))
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("with sizes of at most %d: %v\n%s", most, err, tail(out))
			}
			if bytes.Contains(out, []byte("no tests to run")) {
				t.Fatalf("no test matches %q", pattern)
			}
		})
	}
}

// tail returns the end of an output.
func tail(out []byte) []byte {
	const most = 16 << 10
	return out[max(0, len(out)-most):]
}
