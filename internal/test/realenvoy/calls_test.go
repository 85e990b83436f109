// SPDX-License-Identifier: Apache-2.0

package realenvoy

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/atomic"
)

// callers is how many clients call a gateway at a time.
const callers = 4

// caller is a client of a gateway.
type caller struct {
	number int
	// gateway has the addresses of the gateway's ports by name.
	gateway   func(port string) string
	transport *http.Transport
	ctx       context.Context //nolint:containedctx // It is that of all calls.
	// kept is the connection of lineOfMany, of the target by, on which there were some lines.
	kept  *lines
	by    string
	asked int
	// again counts the calls that were made again on another connection because the
	// gateway said so.
	again *atomic.Int64
}

// patience is how long a call may take: longer than any Envoy is stopped.
const patience = 20 * time.Second

// http makes a request for a host to a port of the gateway, and returns the body.
func (c *caller) http(scheme, port, host string) (string, error) {
	for try := 0; ; try++ {
		status, body, err := c.request(scheme, port, host)
		switch {
		case err != nil:
			return "", err
		case status == http.StatusMisdirectedRequest && try == 0:
			// The connection is for another server: a client makes another one.
			c.again.Inc()
			c.transport.CloseIdleConnections()
		case status != http.StatusOK:
			return "", fmt.Errorf("status %d %q", status, body)
		default:
			return body, nil
		}
	}
}

func (c *caller) request(scheme, port, host string) (status int, body string, err error) {
	ctx, cancel := context.WithTimeout(c.ctx, patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+c.gateway(port)+"/", http.NoBody)
	if err != nil {
		return 0, "", err
	}
	req.Host = host
	res, err := c.transport.RoundTrip(req)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	return res.StatusCode, string(data), err
}

// dial opens a connection to a port of the gateway for lines.
func (c *caller) dial(port string) (*lines, error) {
	conn, err := (&net.Dialer{Timeout: patience}).DialContext(c.ctx, "tcp", c.gateway(port))
	if err != nil {
		return nil, err
	}
	return &lines{conn, bufio.NewScanner(conn)}, nil
}

// line sends a line to a port of the gateway on a connection of its own.
func (c *caller) line(port string) (string, error) {
	l, err := c.dial(port)
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.ask()
}

// linesOfMany is how many lines lineOfMany sends on a connection.
const linesOfMany = 100

// lineOfMany sends a line to the port RAW on a connection that it keeps for some lines, so
// that the traffic of others moves meanwhile. All have to be answered by one target.
func (c *caller) lineOfMany() (string, error) {
	if c.kept == nil {
		var err error
		if c.kept, err = c.dial("RAW"); err != nil {
			return "", err
		}
		c.by, c.asked = "", 0
	}
	name, err := c.kept.ask()
	if err == nil && c.by != "" && name != c.by {
		err = fmt.Errorf("answered by %q after %q", name, c.by)
	}
	if err != nil && c.asked > 0 {
		err = fmt.Errorf("a connection that was used: %w", err)
	}
	c.by = name
	if c.asked++; err != nil || c.asked == linesOfMany {
		c.close()
	}
	return name, err
}

// close closes the connection that is kept.
func (c *caller) close() {
	if c.kept != nil {
		_ = c.kept.Close()
		c.kept = nil
	}
}

// lines is a connection to the port "tcp" of a target.
type lines struct {
	net.Conn
	scanner *bufio.Scanner
}

// ask sends a line and returns the answer.
func (l *lines) ask() (string, error) {
	if err := l.SetDeadline(time.Now().Add(patience)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(l, "?\n"); err != nil {
		return "", err
	}
	if !l.scanner.Scan() {
		return "", cmp.Or(l.scanner.Err(), errors.New("closed without an answer"))
	}
	return l.scanner.Text(), nil
}

// calls are continuous calls of clients while their traffic moves from state to state.
type calls struct {
	t *testing.T
	// mayAnswer reports whether a target may answer in a state.
	mayAnswer func(state int, target string) bool
	// begun is the last state that was written, and applied the last one that the
	// gateways have.
	begun, applied atomic.Int64
	again          atomic.Int64
	end            func()

	mu       sync.Mutex
	total    int
	lost     int
	reasons  map[string]int
	examples []string
	progress chan struct{} // closed when a call has ended
	last     [callers]int64
}

// startCalls starts clients of a gateway.
func startCalls(t *testing.T, mayAnswer func(state int, target string) bool, config *tls.Config, gateway func(port string) string, call func(*caller) (target string, err error)) *calls {
	t.Helper()
	c := &calls{t: t, mayAnswer: mayAnswer, reasons: make(map[string]int), progress: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	var stop atomic.Bool
	for i := range callers {
		running.Go(func() {
			// Half of the clients keep their connections.
			transport := &http.Transport{TLSClientConfig: config, DisableKeepAlives: i%2 == 1}
			defer transport.CloseIdleConnections()
			client := &caller{number: i, gateway: gateway, transport: transport, ctx: ctx, again: &c.again}
			defer client.close()
			for !stop.Load() {
				since, begun := c.applied.Load(), time.Now()
				target, err := call(client)
				c.add(i, since, begun, target, err)
			}
		})
	}
	c.end = sync.OnceFunc(func() {
		stop.Store(true)
		running.Wait()
		cancel()
	})
	t.Cleanup(c.end)
	return c
}

// add records the end of a call that began when a state was applied. A worker of an Envoy may apply
// that state later than the test sees it, so that the previous state may still respond.
func (c *calls) add(client int, since int64, begun time.Time, target string, err error) {
	until := c.begun.Load()
	if err == nil && !c.answeredIn(int(max(0, since-1)), int(until), target) {
		err = fmt.Errorf("answered by %q", target)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.total++
	c.last[client] = since
	if err != nil {
		c.lost++
		reason := reasonOf(err)
		c.reasons[reason]++
		if len(c.examples) < 10 {
			c.examples = append(c.examples, fmt.Sprintf("in states %d to %d, %.1f ms: %s", since, until, float64(time.Since(begun))/float64(time.Millisecond), reason))
		}
	}
	close(c.progress)
	c.progress = make(chan struct{})
}

// reasonOf says why a call failed, without the addresses of its connection.
func reasonOf(err error) string {
	if network, ok := errors.AsType[*net.OpError](err); ok {
		return strings.ReplaceAll(err.Error(), network.Error(), network.Op+": "+network.Err.Error())
	}
	return err.Error()
}

func (c *calls) answeredIn(from, until int, target string) bool {
	for state := from; state <= until; state++ {
		if c.mayAnswer(state, target) {
			return true
		}
	}
	return false
}

// settle returns when each client has made a call since the last state was applied.
func (c *calls) settle() {
	c.t.Helper()
	late := time.NewTimer(2 * patience)
	defer late.Stop()
	for {
		c.mu.Lock()
		last, progress := slices.Min(c.last[:]), c.progress
		c.mu.Unlock()
		if last == c.applied.Load() {
			return
		}
		select {
		case <-progress:
		case <-late.C:
			c.t.Fatalf("a client has made its last call in state %d", last)
		}
	}
}
