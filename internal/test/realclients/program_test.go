// SPDX-License-Identifier: Apache-2.0

package realclients

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"testing"

	"github.com/pilotkit/pilotkit/internal/test/grpccall"
)

// startProgram starts a client in a process of its own. It gets the target, the
// timeout of a call and the pause between two, in milliseconds, as its arguments,
// marks as lines of its standard input, and writes outcomes to its standard
// output. It ends when its standard input does.
func startProgram(t *testing.T, bootstrap []byte, target, program string, args ...string) (*feed, func(mark string) error) {
	t.Helper()
	args = append(args, target, strconv.FormatInt(callTimeout.Milliseconds(), 10), strconv.FormatInt(callPause.Milliseconds(), 10))
	out := newFeed()
	stdin := grpccall.StartProgram(t, bootstrap, nil, func(stdout io.Reader) { out.end(readOutcomes(out, stdout)) }, program, args...)
	return out, func(mark string) error {
		_, err := fmt.Fprintln(stdin, mark)
		return err
	}
}

// readOutcomes reads until the program ends, and returns how it did.
func readOutcomes(out *feed, stdout io.Reader) error {
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		var o outcome
		if err := json.Unmarshal(lines.Bytes(), &o); err != nil {
			return fmt.Errorf("not an outcome: %s: %w", lines.Bytes(), err)
		}
		out.add(o)
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return io.EOF
}
