// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"bytes"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/atomic"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/kube"
)

// roundTripper is an http.RoundTripper that is a function.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestUnreachable: every failure of a server to respond is an error within seconds, with the kind
// that cannot be read, and stays one error until there is a response. Run ends at once meanwhile,
// for any backoff. The time is the bubble's, and no server exists.
func TestUnreachable(t *testing.T) {
	// A wait of client-go ends a millisecond after the last error, whose time is initially the
	// start of the process: in the future of a bubble.
	handlers := utilruntime.ErrorHandlers
	utilruntime.ErrorHandlers = nil
	defer func() { utilruntime.ErrorHandlers = handlers }()
	for name, answer := range map[string]func(*http.Request) error{
		"Refused": func(*http.Request) error {
			return &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
		},
		"Closed": func(*http.Request) error { return io.EOF },
		"Reset": func() func(*http.Request) error {
			var port atomic.Int32 // another one for each connection
			return func(*http.Request) error {
				return &net.OpError{
					Op: "read", Net: "tcp", Source: &net.TCPAddr{Port: int(port.Inc())},
					Err: os.NewSyscallError("read", syscall.ECONNRESET),
				}
			}
		}(),
		"Certificate": func(*http.Request) error { return x509.UnknownAuthorityError{} },
		"TooOld":      func(*http.Request) error { return apierrors.NewResourceExpired("too old") },
		"TimedOut":    func(*http.Request) error { return os.ErrDeadlineExceeded },
		"Silent": func(r *http.Request) error {
			<-r.Context().Done()
			return r.Context().Err()
		},
	} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { testUnreachable(t, answer) }) })
	}
}

func testUnreachable(t *testing.T, answer func(*http.Request) error) {
	t.Helper()
	const most = 2000 // in ten minutes
	var attempts atomic.Int32
	config := &rest.Config{Host: "http://apiserver", Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		if attempts.Inc() > most {
			<-r.Context().Done() // The bubble would stand still.
		}
		return nil, answer(r)
	})}
	var log bytes.Buffer
	c, err := kube.New(config, limits("unreachable.example.com"), kube.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	stop, ended := make(chan struct{}), make(chan struct{})
	begin := time.Now()
	go func() {
		defer close(ended)
		c.Run(stop)
	}()
	for seconds := 6; seconds < 600; seconds++ {
		time.Sleep(time.Until(begin.Add(time.Duration(seconds) * time.Second)))
		synctest.Wait()
		errs := c.Errors()
		if len(errs) != 1 || errs[0].Object.Kind.Kind != "CustomResourceDefinition" || errs[0].Since.Sub(begin) > 6*time.Second {
			t.Errorf("after %d s the errors are %v", seconds, errs)
			break
		}
		if s := c.SourceState(); s.Freshness != configstore.Stale || !s.StaleSince.Equal(errs[0].Since) || s.Synced || len(s.Problems) != 1 {
			t.Errorf("after %d s the state is %+v", seconds, s)
			break
		}
	}
	if lines := strings.Count(log.String(), "\n"); lines > 2 { // it may be known later why
		t.Errorf("%d lines in the log for %d attempts:\n%s", lines, attempts.Load(), log.String())
	}
	if attempts.Load() > most {
		t.Errorf("more than %d attempts in ten minutes", most)
	}
	if c.HasSynced() {
		t.Error("it has synced")
	}
	before := time.Now()
	close(stop)
	<-ended
	if took := time.Since(before); took > 0 {
		t.Errorf("Run took %v to end", took)
	}
}

// TestLoggedOnce: a lasting rejection is logged once, not with each attempt. Attempts alternate
// between watches and lists; if the server has different texts for them, each text is logged once.
func TestLoggedOnce(t *testing.T) {
	for status, lines := range map[int]int{http.StatusForbidden: 1, http.StatusInternalServerError: 2} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { testLoggedOnce(t, status, lines) })
		})
	}
}

func testLoggedOnce(t *testing.T, status, lines int) {
	t.Helper()
	config := &rest.Config{Host: "http://apiserver", Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		verb := "list"
		if r.URL.Query().Get("watch") != "" {
			verb = "watch"
		}
		return answer(r, status, fmt.Sprintf(
			`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d,"message":"cannot %s"}`,
			strings.ReplaceAll(http.StatusText(status), " ", ""), status, verb)), nil
	})}
	var log bytes.Buffer
	c, err := kube.New(config, limits("logged.example.com"), kube.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	end := runAny(t, c.Run)
	time.Sleep(10 * time.Minute)
	synctest.Wait()
	errs := c.Errors()
	end()
	if got := strings.Count(log.String(), "\n"); len(errs) == 0 || got != lines*len(errs) {
		t.Errorf("%d lines in the log for the errors %v:\n%s", got, errs, log.String())
	}
}

// TestRejected: invalid credentials and an untrusted certificate are errors with the reason.
func TestRejected(t *testing.T) {
	server := apiserver.Server(t)
	stranger := restConfig(server.Config())
	stranger.BearerToken = "wrong"
	suspicious := restConfig(server.Config())
	suspicious.Insecure = false
	for name, test := range map[string]struct {
		config   *rest.Config
		expected func(error) bool
	}{
		"Credentials": {stranger, apierrors.IsUnauthorized},
		"Certificate": {suspicious, func(err error) bool {
			var unknown x509.UnknownAuthorityError
			return errors.As(err, &unknown)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCache(t, test.config, limits("rejected.example.com"), kube.Options{})
			run(t, c)
			eventually(t, "the error is shown", func() bool { return len(c.Errors()) > 0 })
			if e := c.Errors()[0]; e.Object.Kind.Kind != "CustomResourceDefinition" || !test.expected(e.Err) {
				t.Errorf("the error is %v", e)
			}
			if c.HasSynced() {
				t.Error("it has synced")
			}
		})
	}
}
