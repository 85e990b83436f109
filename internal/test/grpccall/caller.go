// SPDX-License-Identifier: Apache-2.0

package grpccall

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
)

// Call is a call that a client is to make, without content.
type Call struct {
	// ID is the number of the call among the calls made together. Make sets it.
	ID      int               `json:"id"`
	Target  string            `json:"target"`
	Path    string            `json:"path"`
	Headers map[string]string `json:"headers,omitempty"`
	// Timeout is in milliseconds. Zero means 30 seconds.
	Timeout int64 `json:"timeout"`
	// Waits: it waits for a connection; else it fails at once when there is none to be had.
	Waits bool `json:"waits,omitempty"`
}

// Answer is the result of a call.
type Answer struct {
	ID int `json:"id"`
	// Backend is the header backend of the answer.
	Backend string `json:"backend"`
	// Code is that of the gRPC status; Error its text.
	Code   codes.Code `json:"code"`
	Error  string     `json:"error"`
	Micros int64      `json:"micros"`
}

// Caller is a client that makes calls, several at a time. Its methods are for one goroutine.
type Caller struct {
	tb      testing.TB
	send    func(Call) error
	answers chan Answer
}

const (
	// timeout is that of calls that say none.
	timeout = 30 * time.Second
	// patience is how long a client may take to start and to make calls: grpc-js reads all of
	// Envoy's protocol buffers first.
	patience = 2 * time.Minute
)

// Make makes calls and returns the answers in the order of the calls. The client begins all calls
// before it waits for answers.
func (c *Caller) Make(calls ...Call) []Answer {
	c.tb.Helper()
	out, err := c.Try(calls...)
	if err != nil {
		c.tb.Fatal(err)
	}
	return out
}

// Try is Make for goroutines that are not the test's own.
func (c *Caller) Try(calls ...Call) ([]Answer, error) {
	out := make([]Answer, len(calls))
	for i, call := range calls {
		call.ID = i
		if call.Timeout == 0 {
			call.Timeout = timeout.Milliseconds()
		}
		if err := c.send(call); err != nil {
			return nil, err
		}
	}
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for range calls {
		select {
		case got, ok := <-c.answers:
			if !ok {
				return nil, errors.New("the client has ended")
			}
			out[got.ID] = got
		case <-limit.C:
			return nil, fmt.Errorf("waited for answers, have %+v", out)
		}
	}
	return out, nil
}
