// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestDemonstration runs what "go run ./examples/quickstart" runs.
func TestDemonstration(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), nil, &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for _, want := range []string{
		`loaded    ServiceEntry demo/greeter`,
		`loaded    ServiceEntry demo/example-com`,
		`loaded    WorkloadEntry demo/orders-2`,
		`backend one   answered 10 calls`,
		`first call on backend three \d+ms after the file changed`,
		`\d+ calls meanwhile, 0 failed`,
		`rejected  orders.yaml:\d+:\d+: document 3, WorkloadEntry demo/orders-2: .*adress`,
	} {
		if !regexp.MustCompile(want).MatchString(out.String()) {
			t.Errorf("the output lacks %q:\n%s", want, out.String())
		}
	}
}

// TestServe serves a user's directory and says what it rejected.
func TestServe(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"good.yaml": workload("good", "address: 10.0.0.1", "80"),
		"bad.yaml":  workload("bad", "address: 10.0.0.1", "80000"),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out interruptingBuffer
	out.on, out.do = "rejected", cancel
	if err := run(ctx, []string{"-config", dir, "-listen", "127.0.0.1:0"}, &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"serving " + dir + " on 127.0.0.1:", "loaded    WorkloadEntry demo/good", "bad.yaml", "80000"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the output lacks %q:\n%s", want, out.String())
		}
	}
}

// TestServeRefusesMissingDirectory: a directory that is not there is an error,
// not an empty mesh.
func TestServeRefusesMissingDirectory(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	err := run(t.Context(), []string{"-config", missing, "-listen", "127.0.0.1:0"}, new(bytes.Buffer))
	if err == nil || !strings.Contains(err.Error(), "missing") {
		t.Errorf("run = %v, want an error that names the directory", err)
	}
}

// interruptingBuffer does something when a text is written to it.
type interruptingBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
	on  string
	do  func()
}

func (b *interruptingBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n, err := b.buf.Write(p)
	if strings.Contains(b.buf.String(), "  "+b.on) {
		b.do()
	}
	return n, err
}

func (b *interruptingBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
