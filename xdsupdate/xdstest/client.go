// SPDX-License-Identifier: Apache-2.0

package xdstest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc"

	"github.com/pilotkit/pilotkit/internal/options"
)

// errNotConnected means that the client has no stream.
var errNotConnected = errors.New("not connected")

// ClientOptions are the options of NewClient. The zero value works.
type ClientOptions struct {
	// Node is the identity of the client. Nil means a node with the ID "xdstest".
	Node *core.Node
	// Delta makes the client speak the delta protocol; the default is SotW.
	Delta bool
	// Answer decides how to respond to a response: with an ACK if it returns nil, with a NACK that
	// has the text of the error otherwise. It is called on the goroutine that receives, one call at
	// a time. With nil the client sends an ACK for every response.
	Answer func(Response) error
	// Manual leaves responses unanswered until Ack or Nack is called. Then Answer is not used.
	Manual bool
	// NoHistory makes the client drop responses after processing, so that Responses and Next have
	// none. The accepted resources are in State. It is meant for long tests. By default the client
	// keeps all responses.
	NoHistory bool
}

// Client is an xDS client for tests of any xDS server. It speaks ADS, keeps all responses, sends
// ACKs and NACKs, and can reconnect. Tests need no sleeps, because Next and Await block until their
// condition is met.
//
//	client := xdstest.NewClient(conn, xdstest.ClientOptions{Delta: true})
//	defer client.Close()
//	err := client.Connect(ctx)
//	err = client.Subscribe(envoy.ClusterType) // all of them
//	err = client.Await(ctx, func(s xdstest.State) bool { return s.Has(envoy.ClusterType, name) })
//
// Every method is safe for concurrent use.
type Client struct {
	conn    grpc.ClientConnInterface
	options ClientOptions

	// sending is held while a request is built and sent, so that requests are sent in the order in
	// which they were built. It is locked before mu.
	sending sync.Mutex

	mu     sync.Mutex
	stream stream // nil if the client is not connected
	ended  chan struct{}
	fresh  bool  // no request was sent on the stream yet
	err    error // the reason why the last stream ended
	types  map[string]*subscription
	log    []Response
	read   int           // number of responses in log that Next has returned
	change chan struct{} // closed and replaced when anything above changes
}

// NewClient returns a client over a connection, which stays the caller's. The client is not
// connected yet.
func NewClient(conn grpc.ClientConnInterface, opts ...ClientOptions) *Client {
	o := options.One("xdstest.NewClient", opts)
	if o.Node == nil {
		o.Node = &core.Node{Id: "xdstest"}
	}
	return &Client{
		conn: conn, options: o, types: make(map[string]*subscription), change: make(chan struct{}),
	}
}

// Connect opens a stream, which lives until Close or the end of ctx. Subscriptions of an earlier
// stream are sent again with the client's versions: as version_info of each type (SotW), or as
// initial_resource_versions of each resource (delta).
func (c *Client) Connect(ctx context.Context) error {
	c.Close()
	ctx, cancel := context.WithCancel(ctx)
	s, err := c.open(ctx)
	if err != nil {
		cancel()
		return fmt.Errorf("open stream: %w", err)
	}
	ended := make(chan struct{})
	c.sending.Lock()
	defer c.sending.Unlock()
	c.mu.Lock()
	c.stream, c.ended, c.fresh, c.err = cancelStream{s, cancel}, ended, true, nil
	var requests []request
	for _, typeURL := range slices.Sorted(maps.Keys(c.types)) {
		requests = append(requests, c.types[typeURL].again())
	}
	c.mu.Unlock()
	go c.receive(s, ended)
	for _, r := range requests {
		if err := c.send(r); err != nil {
			return err
		}
	}
	return nil
}

// Close ends the stream, if there is one, and waits until its receiving goroutine has ended. The
// client keeps its subscriptions and resources and can connect again.
func (c *Client) Close() {
	c.mu.Lock()
	s, ended := c.stream, c.ended
	c.stream = nil
	c.mu.Unlock()
	if s != nil {
		s.close()
		<-ended
	}
}

// Subscribe adds names to the subscription of a type. Without names it subscribes to everything.
// The first such request is empty, which servers treat as a wildcard for clusters and listeners;
// later requests and requests for other types use "*".
func (c *Client) Subscribe(typeURL string, names ...string) error {
	return c.resubscribe(typeURL, names, nil)
}

// Unsubscribe removes names from the subscription of a type. The name "*" ends a subscription to
// everything.
func (c *Client) Unsubscribe(typeURL string, names ...string) error {
	return c.resubscribe(typeURL, nil, names)
}

func (c *Client) resubscribe(typeURL string, add, remove []string) error {
	c.sending.Lock()
	defer c.sending.Unlock()
	c.mu.Lock()
	t := c.types[typeURL]
	fresh := t == nil
	if fresh {
		t = newSubscription(typeURL, c.options.Delta)
		c.types[typeURL] = t
	}
	r, connected := t.change(add, remove, fresh), c.stream != nil
	c.mu.Unlock()
	if !connected {
		return nil
	}
	return c.send(r)
}

// Ack sends an ACK for a response, in Manual mode.
func (c *Client) Ack(r Response) error { return c.answer(r, nil) }

// Nack sends a NACK with a text for a response, in Manual mode.
func (c *Client) Nack(r Response, text string) error { return c.answer(r, errors.New(text)) }

// Responses returns all responses received so far, on all streams.
func (c *Client) Responses() []Response {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.log)
}

// Next waits for the next response that Next has not returned yet. The error wraps the error of
// ctx, or the reason why the stream ended.
func (c *Client) Next(ctx context.Context) (Response, error) {
	var out Response
	err := c.wait(ctx, func() bool {
		if c.read == len(c.log) {
			return false
		}
		out = c.log[c.read]
		c.read++
		return true
	})
	return out, err
}

// Err returns the reason why the last stream ended, nil while it lives.
func (c *Client) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// State returns the resources that the client has received and accepted.
func (c *Client) State() State {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stateLocked()
}

// Await waits until a condition on the state is true. The error wraps the error of ctx, or the
// reason why the stream ended. Conditions must not call the client.
func (c *Client) Await(ctx context.Context, condition func(State) bool) error {
	return c.wait(ctx, func() bool { return condition(c.stateLocked()) })
}

func (c *Client) stateLocked() State {
	s := State{types: make(map[string]map[string]Resource, len(c.types))}
	for typeURL, t := range c.types {
		s.types[typeURL] = maps.Clone(t.resources)
	}
	return s
}

// wait calls done with the lock held, once at first and after each change, until it returns true.
func (c *Client) wait(ctx context.Context, done func() bool) error {
	for {
		c.mu.Lock()
		ok, change, err, connected := done(), c.change, c.err, c.stream != nil
		c.mu.Unlock()
		switch {
		case ok:
			return nil
		case err != nil:
			return fmt.Errorf("stream ended: %w", err)
		case !connected:
			return errNotConnected
		}
		select {
		case <-change:
		case <-ctx.Done():
			return fmt.Errorf("wait for the server: %w", ctx.Err())
		}
	}
}

func (c *Client) changedLocked() {
	close(c.change)
	c.change = make(chan struct{})
}

// receive runs until the stream ends.
func (c *Client) receive(s stream, ended chan struct{}) {
	defer close(ended)
	for {
		r, err := s.receive()
		c.mu.Lock()
		if err != nil {
			c.err = err
			c.changedLocked()
			c.mu.Unlock()
			return
		}
		if !c.options.NoHistory {
			c.log = append(c.log, r)
		}
		c.changedLocked()
		c.mu.Unlock()
		if c.options.Manual {
			continue
		}
		var refusal error
		if c.options.Answer != nil {
			refusal = c.options.Answer(r)
		}
		// If sending fails, the stream is broken, and the next receive returns the error.
		_ = c.answer(r, refusal)
	}
}

// answer sends an ACK, or a NACK if there is a refusal.
func (c *Client) answer(r Response, refusal error) error {
	c.sending.Lock()
	defer c.sending.Unlock()
	c.mu.Lock()
	t := c.types[r.TypeURL]
	if t == nil {
		t = newSubscription(r.TypeURL, c.options.Delta)
		c.types[r.TypeURL] = t
	}
	if refusal == nil {
		t.apply(r)
	}
	req := t.answer(r, refusal)
	c.changedLocked()
	c.mu.Unlock()
	return c.send(req)
}

// send sends a request. The caller holds sending. The first request on a stream has the node.
func (c *Client) send(r request) error {
	c.mu.Lock()
	s := c.stream
	if s != nil && c.fresh {
		r.node, c.fresh = c.options.Node, false
	}
	c.mu.Unlock()
	if s == nil {
		return errNotConnected
	}
	if err := s.send(r); err != nil {
		return fmt.Errorf("send: %w", err)
	}
	return nil
}
