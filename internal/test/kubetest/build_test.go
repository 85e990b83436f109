// SPDX-License-Identifier: Apache-2.0

package kubetest

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// deadlined is a test that times out at a certain time.
type deadlined struct {
	*testing.T
	at time.Time
}

func (d deadlined) Deadline() (time.Time, bool) { return d.at, true }

// A build ends before the tests time out, and leaves no process behind.
func TestBuildEndsWithItsTest(t *testing.T) {
	dir := t.TempDir()
	started, ended := filepath.Join(dir, "started"), filepath.Join(dir, "ended")
	script := "#!/bin/sh\ntrap 'echo > " + ended + "; exit 1' INT\necho > " + started + "\nwhile :; do sleep 0.05; done\n"
	if err := os.WriteFile(filepath.Join(dir, "go"), []byte(script), 0o700); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	ctx, cancel := beforeTimeout(deadlined{t, time.Now().Add(buildMargin + time.Second)})
	defer cancel()
	if err := build(ctx, dir, filepath.Join(dir, "binary")); err == nil || ctx.Err() != context.DeadlineExceeded {
		t.Errorf("error %v, context %v", err, ctx.Err())
	}
	for _, file := range []string{started, ended} {
		if _, err := os.Stat(file); err != nil {
			t.Error(err)
		}
	}
}
