// SPDX-License-Identifier: Apache-2.0

package envoyproxy

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	bootstrap "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	"google.golang.org/protobuf/encoding/protojson"
)

// patience is how long waiting may take, on a busy machine.
const patience = 2 * time.Minute

// Proxy is a running Envoy. Its methods fail the test if they fail. Except for Admin, ReadAdmin,
// Stop and Ended, they must be called on the test's own goroutine.
type Proxy struct {
	Program Program
	tb      testing.TB
	log     string
	admin   string
	client  *http.Client
	stop    func()
	pid     int
	ended   chan struct{}
}

// Start starts an Envoy and returns when it has an administration page: AwaitReady
// returns when it serves. It ends with the test, and if that failed its log is shown.
// The test is skipped, or fails, as Require says, if there is no Envoy.
func Start(tb testing.TB, o Options) *Proxy {
	tb.Helper()
	b, err := Bootstrap(o)
	if err != nil {
		tb.Fatal(err)
	}
	return StartWith(tb, o, b)
}

// StartWith is Start with a bootstrap that is not, or not only, made of the options.
func StartWith(tb testing.TB, o Options, b *bootstrap.Bootstrap) *Proxy {
	tb.Helper()
	if o.Program.Path == "" {
		o.Program = Newest(tb)
	}
	if o.LogLevel == "" {
		o.LogLevel = "warning"
	}
	dir := tb.TempDir()
	if o.Dir == "" {
		o.Dir = dir
	}
	address := filepath.Join(dir, "admin")
	p := &Proxy{
		Program: o.Program, tb: tb, log: filepath.Join(dir, "envoy.log"),
		client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience},
		ended:  make(chan struct{}),
	}
	p.run(o, append([]string{
		"-c", writeBootstrap(tb, dir, b), "--use-dynamic-base-id", "--disable-hot-restart", "--admin-address-path", address,
		"--concurrency", strconv.Itoa(max(1, o.Concurrency)), "-l", o.LogLevel,
	}, o.Args...))
	p.Await("administration page", func() bool {
		data, err := os.ReadFile(address)
		if err != nil || len(data) == 0 {
			return false
		}
		p.admin = "http://" + string(data)
		_, _, err = p.ReadAdmin(tb.Context(), "/ready")
		return err == nil
	})
	return p
}

// run starts the process.
func (p *Proxy) run(o Options, args []string) {
	p.tb.Helper()
	log, err := os.Create(p.log)
	if err != nil {
		p.tb.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(o.Program.Path, args...) //nolint:noctx // It is ended by the cleanup.
	cmd.Dir, cmd.Stdout, cmd.Stderr = o.Dir, log, log
	cmd.SysProcAttr = endWithParent()
	if err := cmd.Start(); err != nil {
		p.tb.Fatal(err)
	}
	p.pid = cmd.Process.Pid
	go func() {
		defer close(p.ended)
		_ = cmd.Wait() // It was killed, or the log says why it ended.
	}()
	p.stop = sync.OnceFunc(func() {
		_ = cmd.Process.Kill() // It may have ended.
		<-p.ended
	})
	p.tb.Cleanup(func() {
		p.stop()
		if p.tb.Failed() {
			p.tb.Logf("%s wrote: %s", p.Program, ends(p.Log()))
		}
	})
}

func writeBootstrap(tb testing.TB, dir string, b *bootstrap.Bootstrap) (path string) {
	tb.Helper()
	data, err := protojson.MarshalOptions{Multiline: true, UseProtoNames: true}.Marshal(b)
	if err != nil {
		tb.Fatal(err)
	}
	path = filepath.Join(dir, "bootstrap.json")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		tb.Fatal(err)
	}
	return path
}

// Stop ends the Envoy and returns when its process is gone. The end of the test does
// it too.
func (p *Proxy) Stop() { p.stop() }

// Ended is closed when the process is gone.
func (p *Proxy) Ended() <-chan struct{} { return p.ended }

// ProcessID returns the ID of the process, for queries to the operating system.
func (p *Proxy) ProcessID() int { return p.pid }

// Log returns the output of the Envoy.
func (p *Proxy) Log() []byte {
	data, err := os.ReadFile(p.log)
	if err != nil {
		return []byte(err.Error())
	}
	return data
}

// ends are the beginning and the end of a log: the same error may fill it.
func ends(data []byte) []byte {
	const size = 8000
	if len(data) <= 2*size {
		return data
	}
	return slices.Concat(data[:size], []byte("\n…\n"), data[len(data)-size:])
}

// Await returns when a condition is true. It fails the test if that takes long, or
// if the Envoy ends.
func (p *Proxy) Await(what string, condition func() bool) {
	p.tb.Helper()
	ctx, cancel := context.WithTimeout(p.tb.Context(), patience)
	defer cancel()
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for !condition() {
		select {
		case <-again.C:
		case <-p.ended:
			p.tb.Fatalf("%s has ended, no %s", p.Program, what)
		case <-ctx.Done():
			p.tb.Fatalf("%s: no %s after %v", p.Program, what, patience)
		}
	}
}

// AwaitReady returns when the Envoy serves: it has its first clusters and listeners,
// or has given up waiting for them.
func (p *Proxy) AwaitReady() {
	p.tb.Helper()
	p.Await("readiness", p.Ready)
}

// Validate returns the error with which an Envoy rejects a bootstrap, or nil if it accepts it. The
// Envoy does not listen anywhere. The zero Program is the newest one.
func Validate(tb testing.TB, program Program, b *bootstrap.Bootstrap) error {
	tb.Helper()
	if program.Path == "" {
		program = Newest(tb)
	}
	dir := tb.TempDir()
	cmd := exec.CommandContext(tb.Context(), program.Path, "--mode", "validate", "-c", writeBootstrap(tb, dir, b), "-l", "warning")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", program, err, ends(out))
	}
	return nil
}
