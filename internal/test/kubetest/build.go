// SPDX-License-Identifier: Apache-2.0

package kubetest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/pilotkit/pilotkit/internal/test/tier"
)

// requireAPIServer is the environment variable that makes a server that cannot be
// built a failure.
const requireAPIServer = "PILOTKIT_REQUIRE_APISERVER"

// Version is the version of Kubernetes that the server is.
const Version = "v1.36.3"

// Require skips the test, with the reason, if the server cannot be built; if
// PILOTKIT_REQUIRE_APISERVER is set, it fails the test. Start calls it.
func Require(tb testing.TB) {
	tb.Helper()
	tier.NotShort(tb, "an API server")
	requireBinary(tb)
}

func requireBinary(tb testing.TB) (path string) {
	tb.Helper()
	ctx, cancel := beforeTimeout(tb)
	defer cancel()
	path, err := binary(ctx)
	if errors.Is(err, errNotBuilt) {
		tb.Skip("no API server has been built: PILOTKIT_REQUIRE_APISERVER=1 ./test.sh, or -full, builds it (8 minutes of CPU, a network, 2 GB of memory)")
	}
	if err != nil {
		why := fmt.Sprintf("kube-apiserver %s cannot be built: %v", Version, err)
		if os.Getenv(requireAPIServer) != "" {
			tb.Fatalf("%s (%s is set)", why, requireAPIServer)
		}
		tb.Skip(why)
	}
	return path
}

// buildMargin is the time between the end of a build and the time-out of the tests, because a
// time-out leaves the started processes running.
const buildMargin = 5 * time.Second

// beforeTimeout returns a context that ends before the tests time out.
func beforeTimeout(tb testing.TB) (context.Context, context.CancelFunc) {
	tb.Helper()
	if t, ok := tb.(interface{ Deadline() (time.Time, bool) }); ok {
		if deadline, limited := t.Deadline(); limited {
			return context.WithDeadline(tb.Context(), deadline.Add(-buildMargin))
		}
	}
	return context.WithCancel(tb.Context())
}

// binary returns the path of the server's binary, and builds it if it is not
// there. The name has a hash of everything that the repository has of it.
func binary(ctx context.Context) (string, error) {
	_, here, _, ok := runtime.Caller(0)
	if !ok || !filepath.IsAbs(here) {
		return "", fmt.Errorf("its source cannot be found from %q", here)
	}
	source := filepath.Join(filepath.Dir(here), "testdata", "apiserver")
	sum := sha256.New()
	for _, name := range []string{"go.mod", "go.sum", "main.go"} {
		data, err := os.ReadFile(filepath.Join(source, name))
		if err != nil {
			return "", err
		}
		sum.Write(data)
	}
	dir := filepath.Join(filepath.Dir(here), "..", "..", "..", ".cache", "kubetest")
	path := filepath.Join(dir, "apiserver-"+hex.EncodeToString(sum.Sum(nil))[:12])
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	if !tier.Full() && os.Getenv(requireAPIServer) == "" {
		return "", errNotBuilt
	}
	return path, build(ctx, source, path)
}

// errNotBuilt says that there is no server yet, and that this is no run that builds one.
var errNotBuilt = errors.New("no API server has been built")

// build makes the binary. Processes that build at the same time do not disturb
// each other: each puts a complete file in place.
func build(ctx context.Context, source, path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	part := fmt.Sprintf("%s.%d", path, os.Getpid())
	defer os.Remove(part)
	info := "k8s.io/component-base/version."
	cmd := exec.CommandContext(ctx, "go", "build", "-o", part, "-ldflags", strings.Join([]string{
		"-s -w -X", info + "gitVersion=" + Version, "-X", info + "gitMajor=1", "-X", info + "gitMinor=36",
	}, " "), ".")
	cmd.Dir = source
	// The processes that it started keep the output open for as long as they run.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = time.Second
	cmd.Env = append(os.Environ(), "GOWORK=off")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%w: %s", err, tail(stderr.String()))
	}
	return os.Rename(part, path)
}

// tail returns the end of an output as one line.
func tail(output string) string {
	lines := strings.Split(strings.TrimSpace(output), "\n")
	return strings.Join(lines[max(0, len(lines)-3):], "; ")
}
