// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"embed"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

//go:embed config
var configFiles embed.FS

// patience bounds every wait of the demonstration.
const patience = 20 * time.Second

// demonstration is the run of the program without arguments.
type demonstration struct {
	out      io.Writer
	dir      string
	backends []*backend
	pipeline *pipeline
	address  string
}

func demonstrate(ctx context.Context, out io.Writer) (err error) {
	ctx, cancel := context.WithTimeout(ctx, 4*patience)
	defer cancel()
	dir, err := os.MkdirTemp("", "quickstart")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)

	d := &demonstration{out: out, dir: dir}
	defer func() {
		for _, b := range d.backends {
			b.stop()
		}
	}()
	for _, name := range []string{"one", "two", "three"} {
		b, err := startBackend(ctx, name)
		if err != nil {
			return err
		}
		d.backends = append(d.backends, b)
	}
	if err := d.copyConfig(); err != nil {
		return err
	}
	d.pipeline = newPipeline(dir, slog.New(slog.DiscardHandler))
	s, err := d.pipeline.start(ctx, "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer s.stop()
	d.address = s.address
	fmt.Fprintf(out, "Serving a copy of examples/quickstart/config on %s:\n", s.address)
	d.pipeline.report(out)
	return d.show(ctx)
}

// copyConfig copies the folder. It replaces the ports 50051 to 50053 by the free ports that the
// backends listen on.
func (d *demonstration) copyConfig() error {
	return fs.WalkDir(configFiles, "config", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := configFiles.ReadFile(path)
		if err != nil {
			return err
		}
		text := string(data)
		for i, b := range d.backends {
			text = strings.ReplaceAll(text, strconv.Itoa(50051+i), strconv.Itoa(b.port))
		}
		return os.WriteFile(filepath.Join(d.dir, filepath.Base(path)), []byte(text), 0o600)
	})
}

func (d *demonstration) show(ctx context.Context) error {
	if err := d.call(ctx, "greeter.demo.internal:80", "one"); err != nil {
		return err
	}
	if err := d.call(ctx, "orders.demo.internal:80", "one", "two"); err != nil {
		return err
	}
	if err := d.move(ctx); err != nil {
		return err
	}
	if err := d.breakFile(ctx); err != nil {
		return err
	}
	if err := d.shareTraffic(ctx); err != nil {
		return err
	}
	return d.failOver(ctx)
}

// call calls a service until each of the backends has responded.
func (d *demonstration) call(ctx context.Context, target string, backends ...string) error {
	conn, err := dial(d.address, target)
	if err != nil {
		return err
	}
	defer conn.Close()
	fmt.Fprintf(d.out, "\nCalling xds:///%s with gRPC:\n", target)
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	missing := slices.Clone(backends)
	counts := map[string]int{}
	for n := 0; n < 10 || len(missing) > 0; n++ {
		name, err := who(ctx, conn)
		if err != nil {
			return fmt.Errorf("call %s: %w", target, err)
		}
		if !slices.Contains(backends, name) {
			return fmt.Errorf("call %s: backend %s answered, which is not behind it", target, name)
		}
		counts[name]++
		missing = slices.DeleteFunc(missing, func(m string) bool { return m == name })
	}
	for _, name := range backends {
		fmt.Fprintf(d.out, "  backend %-5s answered %3d calls\n", name, counts[name])
	}
	return nil
}

// move edits a WorkloadEntry while calls continue, so that traffic moves from backend one to
// backend three.
func (d *demonstration) move(ctx context.Context) error {
	conn, err := dial(d.address, "orders.demo.internal:80")
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	calls := startCalls(ctx, conn, 4)
	defer calls.stop()
	if err := calls.next(ctx, "one"); err != nil {
		return err
	}
	fmt.Fprintf(d.out, "\nMoving WorkloadEntry demo/orders-1 from backend one to backend three, in orders.yaml, under load:\n")
	start := time.Now()
	if err := d.edit("orders.yaml", port(d.backends[0]), port(d.backends[2])); err != nil {
		return err
	}
	if err := calls.next(ctx, "three"); err != nil {
		return err
	}
	fmt.Fprintf(d.out, "  first call on backend three %v after the file changed\n", time.Since(start).Round(time.Millisecond))
	calls.stop()
	fmt.Fprintf(d.out, "  %d calls meanwhile, %d failed\n", calls.calls.Load(), calls.failed.Load())
	if err := calls.err(); err != nil {
		return fmt.Errorf("a call failed: %w", err)
	}
	return nil
}

// breakFile introduces an error into a file. The error is reported, and the last good state
// continues to be served.
func (d *demonstration) breakFile(ctx context.Context) error {
	fmt.Fprintf(d.out, "\nBreaking WorkloadEntry demo/orders-2 in orders.yaml (\"adress\"):\n")
	path := filepath.Join(d.dir, "orders.yaml")
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	text := string(data)
	at := strings.LastIndex(text, "address:")
	if err := os.WriteFile(path, []byte(text[:at]+"adress:"+text[at+len("address:"):]), 0o600); err != nil {
		return err
	}
	// The watcher would find the change, too, but the demonstration has to wait for the reload.
	if err := d.pipeline.files.Reload(); err != nil {
		return err
	}
	for _, err := range d.pipeline.files.Errors() {
		fmt.Fprintf(d.out, "  rejected  %s\n", strings.ReplaceAll(err.Error(), d.dir+string(filepath.Separator), ""))
	}
	return d.call(ctx, "orders.demo.internal:80", "two", "three")
}

// edit replaces the first occurrence of a text in a file.
func (d *demonstration) edit(name, old, replacement string) error {
	path := filepath.Join(d.dir, name)
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(strings.Replace(string(data), old, replacement, 1)), 0o600)
}

func port(b *backend) string { return "grpc: " + strconv.Itoa(b.port) }
