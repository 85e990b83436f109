// SPDX-License-Identifier: Apache-2.0

package realclients

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/xds"
	"google.golang.org/protobuf/types/known/emptypb"
)

// ask is a call that a client is to make, and answer is what came of it.
type ask struct {
	ID      int               `json:"id"`
	Target  string            `json:"target"`
	Path    string            `json:"path"`
	Headers map[string]string `json:"headers,omitempty"`
	// Timeout is in milliseconds.
	Timeout int64 `json:"timeout"`
}

type answer struct {
	ID      int    `json:"id"`
	Backend string `json:"backend"`
	// Code is the number of the gRPC status; Error its text.
	Code   int    `json:"code"`
	Error  string `json:"error"`
	Micros int64  `json:"micros"`
}

// asker is one of the clients, which makes the calls that it is asked for, several
// at a time.
type asker struct {
	t       *testing.T
	send    func(ask) error
	answers chan answer
}

// newAsker starts a client, which ends with the test.
func newAsker(t *testing.T, client kind, bootstrap []byte) *asker {
	t.Helper()
	a := &asker{t: t, answers: make(chan answer, 1024)}
	switch client.name {
	case "grpc-go":
		a.send = a.startGo(bootstrap)
	case "grpc-js":
		a.send = a.startProgram(bootstrap, "node", filepath.Join(nodeDir, "ask.js"))
	default:
		a.send = a.startProgram(bootstrap, findPython(), filepath.Join("testdata", "python", "ask.py"))
	}
	return a
}

// ask makes calls, of which the clients begin all before they wait for answers, and
// returns the answers in the order of the calls.
func (a *asker) ask(calls ...ask) []answer {
	a.t.Helper()
	out := make([]answer, len(calls))
	for i, c := range calls {
		c.ID = i
		if c.Timeout == 0 {
			c.Timeout = callTimeout.Milliseconds()
		}
		if err := a.send(c); err != nil {
			a.t.Fatal(err)
		}
	}
	limit := time.NewTimer(startPatience)
	defer limit.Stop()
	for range calls {
		select {
		case got := <-a.answers:
			out[got.ID] = got
		case <-limit.C:
			a.t.Fatalf("waited for answers, have %+v", out)
		}
	}
	return out
}

// startGo makes calls with grpc-go in this process.
func (a *asker) startGo(bootstrap []byte) func(ask) error {
	a.t.Helper()
	builder, err := xds.NewXDSResolverWithConfigForTesting(bootstrap)
	if err != nil {
		a.t.Fatal(err)
	}
	conns := make(map[string]*grpc.ClientConn)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	a.t.Cleanup(func() {
		cancel()
		running.Wait()
		for _, c := range conns {
			_ = c.Close()
		}
	})
	return func(call ask) error {
		if conns[call.Target] == nil {
			c, err := grpc.NewClient(call.Target, grpc.WithResolvers(builder), grpc.WithTransportCredentials(insecure.NewCredentials()))
			if err != nil {
				return err
			}
			conns[call.Target] = c
		}
		conn := conns[call.Target]
		running.Go(func() { a.answers <- invoke(ctx, conn, call) })
		return nil
	}
}

func invoke(ctx context.Context, conn *grpc.ClientConn, call ask) answer {
	ctx, cancel := context.WithTimeout(metadata.NewOutgoingContext(ctx, metadata.New(call.Headers)), time.Duration(call.Timeout)*time.Millisecond)
	defer cancel()
	start := time.Now()
	var header metadata.MD
	err := conn.Invoke(ctx, call.Path, &emptypb.Empty{}, &emptypb.Empty{}, grpc.Header(&header))
	out := answer{ID: call.ID, Code: int(status.Code(err)), Error: status.Convert(err).Message(), Micros: time.Since(start).Microseconds()}
	if names := header.Get("backend"); err == nil && len(names) > 0 {
		out.Backend = names[0]
	}
	return out
}

// startProgram makes calls with a program.
func (a *asker) startProgram(bootstrap []byte, program string, args ...string) func(ask) error {
	a.t.Helper()
	file := filepath.Join(a.t.TempDir(), "bootstrap.json")
	if err := os.WriteFile(file, bootstrap, 0o600); err != nil {
		a.t.Fatal(err)
	}
	cmd := exec.CommandContext(a.t.Context(), program, args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + a.t.TempDir(), "GRPC_XDS_BOOTSTRAP=" + file}
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
		a.t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() { a.read(stdout) })
	a.t.Cleanup(func() {
		running.Wait()
		if err := cmd.Wait(); err != nil {
			a.t.Errorf("%s: %v", program, err)
		}
		if a.t.Failed() && stderr.Len() > 0 {
			a.t.Logf("%s wrote to its standard error:\n%s", program, stderr.String())
		}
	})
	lines := json.NewEncoder(stdin)
	return func(call ask) error { return lines.Encode(call) }
}

// read passes on answers until the program ends.
func (a *asker) read(stdout io.Reader) {
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		var got answer
		if err := json.Unmarshal(lines.Bytes(), &got); err != nil {
			a.t.Errorf("not an answer: %s: %v", lines.Bytes(), err)
			return
		}
		a.answers <- got
	}
}
