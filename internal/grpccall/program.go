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
	"sync"
)

// startProgram makes calls with a program, which reads calls as lines of JSON and writes answers so. It ends when its
// standard input does.
func (c *Caller) startProgram(bootstrap []byte, program string, args ...string) func(Call) error {
	c.tb.Helper()
	file := filepath.Join(c.tb.TempDir(), "bootstrap.json")
	if err := os.WriteFile(file, bootstrap, 0o600); err != nil {
		c.tb.Fatal(err)
	}
	cmd := exec.CommandContext(c.tb.Context(), program, args...)
	// Nothing else of the environment: proxies, for example, are for the world and not for the loopback interface.
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + c.tb.TempDir(), "GRPC_XDS_BOOTSTRAP=" + file}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdin, errIn := cmd.StdinPipe()
	stdout, errOut := cmd.StdoutPipe()
	cmd.Cancel = func() error {
		_ = stdin.Close() // It ends by itself.
		return os.ErrProcessDone
	}
	cmd.WaitDelay = patience
	if err := errors.Join(errIn, errOut, cmd.Start()); err != nil {
		c.tb.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() { c.read(stdout) })
	c.tb.Cleanup(func() {
		running.Wait()
		if err := cmd.Wait(); err != nil {
			c.tb.Errorf("%s: %v", program, err)
		}
		if c.tb.Failed() && stderr.Len() > 0 {
			c.tb.Logf("%s wrote to its standard error:\n%s", program, stderr.String())
		}
	})
	lines := json.NewEncoder(stdin)
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
