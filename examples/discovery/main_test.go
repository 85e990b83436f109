// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pilotkit/pilotkit/internal/test/testmain"
)

func TestMain(m *testing.M) { testmain.Verify(m) }

// testPatience bounds the waits of a test.
const testPatience = time.Minute

// program is a control plane that runs in this process.
type program struct {
	t *testing.T
	// xds and admin are its addresses, once it serves.
	xds, admin string
	cancel     context.CancelFunc
	ended      chan error
	lines      chan string
}

// start runs the program with some flags, and free ports unless there are flags for them.
func start(t *testing.T, args ...string) *program {
	t.Helper()
	given := strings.Join(args, " ")
	for _, name := range []string{"-listen", "-admin"} {
		if !strings.Contains(given, name+" ") {
			args = append(args, name, "127.0.0.1:0")
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	p := &program{t: t, cancel: cancel, ended: make(chan error, 1), lines: make(chan string, 1000)}
	out, in := io.Pipe()
	go func() {
		defer close(p.lines)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			select {
			case p.lines <- lines.Text():
			default: // no reader
			}
		}
	}()
	go func() {
		err := run(ctx, args, in)
		_ = in.Close()
		p.ended <- err
	}()
	t.Cleanup(func() { _ = p.stop() })
	return p
}

// serving returns when the program serves.
func (p *program) serving() *program {
	p.t.Helper()
	line := p.log("msg=serving ")
	for name, to := range map[string]*string{"xds": &p.xds, "admin": &p.admin} {
		found := regexp.MustCompile(` ` + name + `=(\S+)`).FindStringSubmatch(line)
		if found == nil {
			p.t.Fatalf("no %s in %s", name, line)
		}
		*to = found[1]
	}
	return p
}

// log returns the next line of the log that has a text.
func (p *program) log(text string) string {
	p.t.Helper()
	timer := time.NewTimer(testPatience)
	defer timer.Stop()
	var before []string
	for {
		select {
		case line, ok := <-p.lines:
			if !ok {
				p.t.Fatalf("the program has ended before it said %q:\n%s", text, strings.Join(before, "\n"))
			}
			before = append(before, line)
			if strings.Contains(line, text) {
				return line
			}
		case <-timer.C:
			p.t.Fatalf("the program did not say %q:\n%s", text, strings.Join(before, "\n"))
		}
	}
}

// stop stops the program, and returns its error.
func (p *program) stop() error {
	p.cancel()
	timer := time.NewTimer(testPatience)
	defer timer.Stop()
	select {
	case err := <-p.ended:
		p.ended <- err
		return err
	case <-timer.C:
		p.t.Error("the program has not ended")
		return errors.New("it has not ended")
	}
}

// get returns the status and the body of an answer of the admin port.
func get(t *testing.T, admin, path string) (status int, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+admin+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(content)
}

// entry returns a ServiceEntry of a service whose backend listens on an address, as
// JSON.
func entry(name, backend string) string {
	host, port, _ := strings.Cut(backend, ":")
	return fmt.Sprintf(`{"apiVersion": "networking.istio.io/v1", "kind": "ServiceEntry", "metadata": {"name": "%[1]s", "namespace": "demo"},
 "spec": {"hosts": ["%[1]s.example.com"], "resolution": "STATIC", "ports": [{"number": 80, "name": "grpc", "protocol": "GRPC"}],
  "endpoints": [{"address": "%[2]s", "ports": {"grpc": %[3]s}}]}}`, name, host, port)
}
