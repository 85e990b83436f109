// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

//go:embed config
var configFiles embed.FS

// patience bounds every wait of the demonstration.
const patience = 30 * time.Second

const (
	shop = "shop.example.com"
	blog = "blog.example.com"
)

// demonstration is the run of the program.
type demonstration struct {
	options

	out       io.Writer
	dir       string
	backends  []*backend
	authority *authority
	plane     *plane
	port      int // port of the gateway
}

// demonstrate runs the demonstration, or a reduced one without an Envoy.
func demonstrate(ctx context.Context, o options, program string, out io.Writer) error {
	dir, err := os.MkdirTemp("", "envoygateway")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	d := &demonstration{options: o, out: out, dir: dir}
	defer func() {
		for _, b := range d.backends {
			b.stop()
		}
	}()
	if err := d.prepare(ctx); err != nil {
		return err
	}
	d.plane = newPlane(dir)
	address, stop, err := d.plane.start(ctx)
	if err != nil {
		return err
	}
	defer stop()
	bootstrap, err := bootstrap(address, d.sotw)
	if err != nil {
		return err
	}
	d.printf("Serving %s on %s by ADS.\n", filepath.Join(dir, "config"), address)
	if program == "" {
		return d.withoutEnvoy(ctx, bootstrap)
	}
	return d.withEnvoy(ctx, program, bootstrap)
}

// prepare writes the directory, and starts its backends.
func (d *demonstration) prepare(ctx context.Context) (err error) {
	for _, folder := range []string{"config", "certificates"} {
		if err := os.Mkdir(filepath.Join(d.dir, folder), 0o700); err != nil {
			return err
		}
	}
	for _, name := range []string{"one", "two", "three"} {
		b, err := startBackend(ctx, name)
		if err != nil {
			return err
		}
		d.backends = append(d.backends, b)
	}
	if d.port, err = freePort(ctx); err != nil {
		return err
	}
	if d.authority, err = newAuthority(); err != nil {
		return err
	}
	if err := writeFile(filepath.Join(d.dir, "certificates", "ca.crt"), d.authority.pem()); err != nil {
		return err
	}
	if _, err := d.issue(); err != nil {
		return err
	}
	return d.copyConfig()
}

// issue replaces the certificate of the gateway by a new one.
func (d *demonstration) issue() (serial string, err error) {
	files := certificateFiles(d.dir)
	return d.authority.issue(files.Certificate, files.Key, shop, blog)
}

// copyConfig copies the folder config. It replaces the port 8443 of the gateway and the ports 8001
// and 8003 of the backends one and three by free ports.
func (d *demonstration) copyConfig() error {
	files, err := configFiles.ReadDir("config")
	if err != nil {
		return err
	}
	ports := strings.NewReplacer("8443", strconv.Itoa(d.port), "8001", strconv.Itoa(d.backends[0].port), "8003", strconv.Itoa(d.backends[2].port))
	for _, f := range files {
		data, err := configFiles.ReadFile("config/" + f.Name())
		if err != nil {
			return err
		}
		if err := writeFile(filepath.Join(d.dir, "config", f.Name()), []byte(ports.Replace(string(data)))); err != nil {
			return err
		}
	}
	return nil
}

// withoutEnvoy serves any Envoy that the user starts.
func (d *demonstration) withoutEnvoy(ctx context.Context, bootstrap []byte) error {
	path := filepath.Join(d.dir, "bootstrap.json")
	if err := writeFile(path, bootstrap); err != nil {
		return err
	}
	d.printf("\nThere is no Envoy here. %s\nThis is the bootstrap of an Envoy for this server, which is %s too:\n\n%s\n\n", howToGetEnvoy, path, bootstrap)
	d.howToCall()
	return d.serve(ctx)
}

func (d *demonstration) howToCall() {
	d.printf("A request through the gateway:\n  curl --cacert %s --connect-to ::127.0.0.1: https://%s:%d/\n", filepath.Join(d.dir, "certificates", "ca.crt"), shop, d.port)
}

// serve serves until it is interrupted.
func (d *demonstration) serve(ctx context.Context) error {
	d.printf("Edit the files of %s and see. Serving until interrupted.\n", d.dir)
	<-ctx.Done()
	return context.Cause(ctx)
}

// withEnvoy runs the whole demonstration.
func (d *demonstration) withEnvoy(ctx context.Context, program string, bootstrap []byte) error {
	path := filepath.Join(d.dir, "bootstrap.json")
	if err := writeFile(path, bootstrap); err != nil {
		return err
	}
	begun := time.Now()
	envoy, err := startEnvoy(ctx, program, d.dir, path)
	if err != nil {
		return err
	}
	defer envoy.stop()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() { // if the Envoy ends on its own, all waits for it end
		select {
		case <-envoy.ended:
			cancel(envoy.failure())
		case <-ctx.Done():
		}
	}()
	d.printf("Starting %s with %s.\n", program, path)
	if err := d.show(ctx, begun); err != nil {
		if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
			err = cause
		}
		return err
	}
	if !d.keep {
		return nil
	}
	if admin, err := os.ReadFile(envoy.admin); err == nil {
		d.printf("\nThe Envoy's administration page is http://%s. ", admin)
	}
	d.howToCall()
	return d.serve(ctx)
}

// await waits until a condition is true, and returns the time since a given moment.
func (d *demonstration) await(ctx context.Context, what string, since time.Time, condition func() bool) (time.Duration, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("it takes more than %v", patience))
	defer cancel()
	again := time.NewTicker(2 * time.Millisecond)
	defer again.Stop()
	for !condition() {
		select {
		case <-again.C:
		case <-ctx.Done():
			return 0, fmt.Errorf("wait until %s: %w", what, context.Cause(ctx))
		}
	}
	return time.Since(since).Round(time.Millisecond), nil
}

// edit replaces all occurrences of texts in a file of the folder config. Each text is followed by
// its replacement.
func (d *demonstration) edit(name string, texts ...string) error {
	path := filepath.Join(d.dir, "config", name)
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for i := 0; i < len(texts); i += 2 {
		if !strings.Contains(string(data), texts[i]) {
			return fmt.Errorf("%s has no %q", path, texts[i])
		}
	}
	return writeFile(path, []byte(strings.NewReplacer(texts...).Replace(string(data))))
}

// client returns a client of the gateway.
func (d *demonstration) client(keep bool) *client {
	return newClient(d.port, d.authority.certificate, keep)
}

func (d *demonstration) printf(format string, args ...any) { fmt.Fprintf(d.out, format, args...) }

// freePort returns a port of the loopback interface below the ephemeral range, so that no outgoing
// connection takes it before the gateway does.
func freePort(ctx context.Context) (int, error) {
	for try := 0; ; try++ {
		port := 10_000 + rand.IntN(10_000)
		lis, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			return port, lis.Close()
		}
		if try == 100 {
			return 0, err
		}
	}
}
