// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pilotkit/pilotkit/internal/test/testmain"
)

func TestMain(m *testing.M) { testmain.Verify(m) }

// TestDemonstration runs what "go run ./examples/quickstart" runs.
func TestDemonstration(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), nil, &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for _, want := range []string{
		`serving   2 DestinationRule, 5 ServiceEntry, 1 VirtualService, 2 WorkloadEntry`,
		`backend one   answered  10 calls`,
		`first call on backend three [\d.]+m?s after the file changed`,
		`\d+ calls meanwhile, 0 failed`,
		`rejected  orders.yaml:\d+:\d+: document 3, WorkloadEntry demo/orders-2: .*adress`,
		`x-version: v2\n  backend two   answered  10 calls`,
		`the call failed: Unavailable: .*fault`,
		`backend one   answered  10 calls\n  stopping backend one\n  backend two   answered  10 calls`,
	} {
		if !regexp.MustCompile(want).MatchString(out.String()) {
			t.Errorf("the output lacks %q:\n%s", want, out.String())
		}
	}
}

// TestServe serves a user's directory, as it grows in a repository. The report has one line for
// each problem of an object, for each part of a policy without effect, and for each kind that is
// not served; the served objects are summarized in one line.
func TestServe(t *testing.T) {
	dir := t.TempDir()
	object := func(apiVersion, kind, name, spec string) string {
		return "apiVersion: " + apiVersion + "\nkind: " + kind + "\nmetadata: {name: " + name + ", namespace: demo}\nspec: " + spec + "\n---\n"
	}
	for name, text := range map[string]string{
		"good.yaml": workload("good", "address: 10.0.0.1", "80"),
		"bad.yaml":  workload("bad", "address: 10.0.0.1", "80000"),
		"routes.yaml": object("networking.istio.io/v1", "VirtualService", "a", "{hosts: [a.test], http: [{route: [{destination: {host: a.test}}]}]}") +
			object("networking.istio.io/v1", "VirtualService", "b", "{hosts: [b.test], http: [{route: [{destination: {host: b.test}}]}]}") +
			object("networking.istio.io/v1beta9", "DestinationRule", "c", "{host: c.test}") +
			object("networking.istio.io/v1", "DestinationRule", "d", "{host: d.test}") +
			object("telemetry.istio.io/v1", "Telemetry", "t", "{}"),
		"app.yaml":     object("apps/v1", "Deployment", "e", "{}") + object("v1", "Service", "e", "{}"),
		"values.yaml":  "replicas: 1\n",
		"package.json": `{"name": "ui"}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out interruptingBuffer
	out.on, out.do = "serving   ", cancel
	if err := run(ctx, []string{"-config", dir, "-listen", "127.0.0.1:0"}, &out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.ReplaceAll(strings.TrimSpace(out.String()), dir+string(filepath.Separator), ""), "\n")
	want := []string{
		`serving .* on 127\.0\.0\.1:\d+`,
		`  rejected  bad\.yaml:6:11: document 1, WorkloadEntry demo/bad: .*80000.*`,
		`  warning   routes\.yaml:\d+:1: document 3, DestinationRule demo/c: kind: unknown kind .*/v1beta9/DestinationRule: .*`,
		`  no effect DestinationRule demo/d: spec\.host: no service has the host name d\.test`,
		`  no effect VirtualService demo/a: spec\.hosts\[0\]: no service has this host name; only sidecars serve it, on port 80`,
		`  no effect VirtualService demo/a: spec\.http\[0\]\.route\[0\]\.destination\.host: no service has the host name a\.test: requests fail`,
		`  no effect VirtualService demo/b: spec\.hosts.*`,
		`  no effect VirtualService demo/b: spec\.http.*`,
		`  no effect Telemetry demo/t: nothing is made of this kind: .*`,
		`  serving   1 DestinationRule, 2 VirtualService, 1 WorkloadEntry; passed over 2 objects of other kinds and 2 documents that are no objects`,
	}
	for _, w := range want {
		if !slices.ContainsFunc(lines, regexp.MustCompile("^"+w+"$").MatchString) {
			t.Errorf("no line is %q in\n%s", w, out.String())
		}
	}
	if len(lines) != len(want) {
		t.Errorf("%d lines, want %d:\n%s", len(lines), len(want), out.String())
	}
}

// TestArguments: invalid arguments are an error and start no demonstration, and a request for help
// is not an error.
func TestArguments(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"config"}, `unknown argument "config"`},
		{[]string{"-config", "x", "y"}, `unknown argument "y"`},
		{[]string{"-listen", "127.0.0.1:0"}, "-listen is of use with -config only"},
		{[]string{"-debug", "127.0.0.1:0"}, "-debug is of use with -config only"},
		{[]string{"-config", ""}, "-config names no directory"},
		{[]string{"-port", "1"}, "-port"},
	} {
		var out bytes.Buffer
		if err := run(t.Context(), tt.args, &out); err == nil || !strings.Contains(err.Error(), tt.want) || out.Len() > 0 {
			t.Errorf("run(%q) = %v and printed %q, want an error with %q alone", tt.args, err, out.String(), tt.want)
		}
	}
	for _, args := range [][]string{{"-h"}, {"--help"}} {
		var out bytes.Buffer
		if err := run(t.Context(), args, &out); err != nil || !strings.Contains(out.String(), "-config directory") {
			t.Errorf("run(%q) = %v and printed %q, want the usage", args, err, out.String())
		}
	}
}

// TestServePages: with -debug there are debug pages.
func TestServePages(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "good.yaml"), []byte(workload("good", "address: 10.0.0.1", "80")), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ready, done := make(chan struct{}), make(chan error, 1)
	var out interruptingBuffer
	out.on, out.do = "serving   ", sync.OnceFunc(func() { close(ready) })
	go func() {
		done <- run(ctx, []string{"-config", dir, "-listen", "127.0.0.1:0", "-debug", "127.0.0.1:0"}, &out)
	}()
	select {
	case <-ready:
	case err := <-done:
		t.Fatal(err)
	}
	where := regexp.MustCompile(`pages on (http://\S+/)\n`).FindStringSubmatch(out.String())
	if where == nil {
		t.Fatalf("it does not say where:\n%s", out.String())
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, where[1]+"configs.json?kind=WorkloadEntry", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if page, err := io.ReadAll(answer.Body); err != nil || answer.StatusCode != http.StatusOK || !strings.Contains(string(page), `"name": "good"`) {
		t.Errorf("%s, %v\n%s", answer.Status, err, page)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestServeRefusesMissingDirectory: a directory that is not there is an error,
// not an empty mesh.
func TestServeRefusesMissingDirectory(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	var out bytes.Buffer
	err := run(t.Context(), []string{"-config", missing, "-listen", "127.0.0.1:0"}, &out)
	if err == nil || strings.Count(err.Error(), missing) != 1 || out.Len() > 0 {
		t.Errorf("run = %v and printed %q, want an error that names the directory, and nothing else", err, out.String())
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
