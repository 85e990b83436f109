// SPDX-License-Identifier: Apache-2.0

package grpccall

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
)

// StartProgram starts a gRPC client or server in a process of its own, with a bootstrap and
// otherwise an empty environment, because proxy settings, for example, must not apply to the
// loopback interface. The process ends when its standard input is closed, at the end of the test. A
// failure of the process fails the test. read must read all of its standard output.
func StartProgram(tb testing.TB, bootstrap []byte, env []string, read func(io.Reader), program string, args ...string) (stdin io.Writer) {
	tb.Helper()
	file := filepath.Join(tb.TempDir(), "bootstrap.json")
	if err := os.WriteFile(file, bootstrap, 0o600); err != nil {
		tb.Fatal(err)
	}
	cmd := exec.CommandContext(tb.Context(), program, args...)
	cmd.Env = append(slices.Clone(env), "PATH="+os.Getenv("PATH"), "HOME="+tb.TempDir(), "GRPC_XDS_BOOTSTRAP="+file)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	in, errIn := cmd.StdinPipe()
	out, errOut := cmd.StdoutPipe()
	// Wait need not report this end; the program is killed only if that does not end it.
	cmd.Cancel = func() error {
		_ = in.Close()
		return os.ErrProcessDone
	}
	cmd.WaitDelay = patience
	if err := errors.Join(errIn, errOut, cmd.Start()); err != nil {
		tb.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() { read(out) })
	tb.Cleanup(func() {
		running.Wait()
		if err := cmd.Wait(); err != nil {
			tb.Errorf("%s: %v", program, err)
		}
		if tb.Failed() && stderr.Len() > 0 {
			tb.Logf("%s wrote to its standard error:\n%.4000s", program, stderr.String())
		}
	})
	return in
}

// startProgram makes calls with a program, which reads calls as lines of JSON and writes answers so.
func (c *Caller) startProgram(bootstrap []byte, program string, args ...string) func(Call) error {
	c.tb.Helper()
	lines := json.NewEncoder(StartProgram(c.tb, bootstrap, nil, c.read, program, args...))
	return func(call Call) error { return lines.Encode(call) }
}

// read passes on answers until the program ends; then there are no more.
func (c *Caller) read(stdout io.Reader) {
	defer close(c.answers)
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		var got Answer
		if err := json.Unmarshal(lines.Bytes(), &got); err != nil {
			c.tb.Errorf("not an answer: %s: %v", lines.Bytes(), err)
			return
		}
		c.answers <- got
	}
}
