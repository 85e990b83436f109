// SPDX-License-Identifier: Apache-2.0

package realclients

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
)

// startProgram starts a client in a process of its own. It gets the target, the
// timeout of a call and the pause between two, in milliseconds, as its arguments,
// marks as lines of its standard input, and writes outcomes to its standard
// output. It ends when its standard input does.
func startProgram(t *testing.T, bootstrap []byte, target, program string, args ...string) (*feed, func(mark string) error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "bootstrap.json")
	if err := os.WriteFile(file, bootstrap, 0o600); err != nil {
		t.Fatal(err)
	}
	args = append(args, target, strconv.FormatInt(callTimeout.Milliseconds(), 10), strconv.FormatInt(callPause.Milliseconds(), 10))
	cmd := exec.CommandContext(t.Context(), program, args...)
	// Nothing else of the environment: proxies, for example, are for the world and
	// not for the loopback interface.
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "GRPC_XDS_BOOTSTRAP=" + file}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	// The end of the test is the end of the program's input, which Wait need not
	// report; it is killed only if that does not end it.
	cmd.Cancel = func() error {
		_ = stdin.Close()
		return os.ErrProcessDone
	}
	cmd.WaitDelay = patience
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	out := newFeed()
	var running sync.WaitGroup
	running.Go(func() { out.end(readOutcomes(out, stdout)) })
	t.Cleanup(func() {
		running.Wait()
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s: %v", program, err)
		}
		if t.Failed() && stderr.Len() > 0 {
			t.Logf("%s wrote to its standard error:\n%s", program, stderr.String())
		}
	})
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
