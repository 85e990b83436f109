// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pilotkit/pilotkit/internal/backoff"
	"github.com/pilotkit/pilotkit/internal/limit"
)

const (
	// listPage is the number of objects in one response.
	listPage limit.Size = 1000
	// catchUpInterval is the interval of the progress requests of a call that needs the latest
	// state. They are repeated because a server that has not caught up does not respond.
	catchUpInterval = 5 * time.Millisecond
	// maxSilent bounds how often the time that a watch may be silent is doubled.
	maxSilent = 4
)

// follow synchronizes the cache with etcd until ctx ends.
func (c *Cache) follow(ctx context.Context) {
	select {
	case c.feeding <- struct{}{}:
	case <-ctx.Done():
		return
	}
	c.setRunning(true)
	defer func() {
		c.lost(nil)
		c.setRunning(false)
		<-c.feeding
	}()
	retry, relisted := backoff.Backoff{Longest: c.opts.MaxBackoff}, false
	for {
		before := c.lastHeard()
		err := c.watchFrom(ctx)
		if ctx.Err() != nil {
			return
		}
		// The list has succeeded: watch again at once, but only once in a row.
		if relisted = errors.Is(err, errCompacted) && !relisted; relisted {
			continue
		}
		c.lost(err)
		if c.lastHeard() != before {
			retry.Reset()
		}
		backoff.Sleep(ctx, retry.Next())
		// The backoff of gRPC between attempts to connect grows to minutes.
		c.client.ActiveConnection().ResetConnectBackoff()
	}
}

func (c *Cache) lastHeard() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.feed.heard
}

// watchFrom lists if necessary, and watches until the watch ends.
func (c *Cache) watchFrom(ctx context.Context) error {
	s, err := c.attach(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	return c.pump(ctx, s, c.opts.ProgressInterval, 2*c.opts.ProgressInterval, func(int64) bool { return false })
}

// attach returns a started stream of the changes after the published revision.
func (c *Cache) attach(ctx context.Context) (*stream, error) {
	if !c.isListed() {
		if err := c.list(ctx); err != nil {
			return nil, err
		}
	}
	s, err := c.open(ctx, c.shownRevision()+1)
	if err != nil {
		return nil, err
	}
	if err := c.begun(ctx, s); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// begun waits until the server watches. If the server's revision is lower than the published one,
// or it belongs to another cluster, it may have lost data or been replaced. Then everything is
// listed again.
func (c *Cache) begun(ctx context.Context, s *stream) error {
	timeout := time.NewTimer(c.opts.Timeout)
	defer timeout.Stop()
	select {
	case r, ok := <-s.responses:
		switch {
		case !ok:
			return s.err
		case cancelled(r) != nil:
			return c.relistAfter(ctx, cancelled(r))
		case r.GetHeader().GetClusterId() != c.cluster || r.GetHeader().GetRevision() < c.shownRevision():
			return c.relistAfter(ctx, errCompacted)
		}
		c.heard()
		return nil
	case <-timeout.C:
		return fmt.Errorf("watch: %w in %v", errNoProgress, c.opts.Timeout)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// relistAfter lists again if a watch has ended because of a compaction, and returns the reason for
// its end.
func (c *Cache) relistAfter(ctx context.Context, err error) error {
	if errors.Is(err, errCompacted) {
		if failed := c.list(ctx); failed != nil {
			return failed
		}
	}
	return err
}

// pump publishes the events of a stream until done returns true. Before each wait, done gets the
// latest revision with all events published. pump requests progress at each interval. It fails if
// no response comes for the time silence. After a silent watch this time is doubled until a response
// is complete, because a server that needs longer would never come to an end.
func (c *Cache) pump(ctx context.Context, s *stream, interval, silence time.Duration, done func(current int64) bool) error {
	ask := time.NewTicker(interval)
	defer ask.Stop()
	patience := silence << c.silent
	quiet := time.NewTimer(patience)
	defer quiet.Stop()
	for current := int64(0); !done(current); {
		select {
		case r, ok := <-s.responses:
			if !ok {
				return s.err
			}
			if err := cancelled(r); err != nil {
				return c.relistAfter(ctx, err)
			}
			if r.GetFragment() {
				quiet.Reset(patience)
				continue
			}
			if len(r.GetEvents()) == 0 {
				current = r.GetHeader().GetRevision()
			}
			c.publishEvents(r.GetEvents())
			c.heard()
			c.silent, patience = 0, silence
			quiet.Reset(patience)
		case <-ask.C:
			s.requestProgress()
		case <-quiet.C:
			c.silent = min(c.silent+1, maxSilent)
			return fmt.Errorf("watch: %w in %v", errNoProgress, patience)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// list reads everything at one revision, and publishes the difference.
func (c *Cache) list(ctx context.Context) error {
	var kvs []*mvccpb.KeyValue
	var header *etcdserverpb.ResponseHeader
	opts := []clientv3.OpOption{clientv3.WithRange(c.keys.end()), clientv3.WithLimit(int64(listPage.Get()))}
	for from := c.keys.prefix; ; {
		page, err := c.get(ctx, from, opts...)
		if err != nil {
			return fmt.Errorf("list: %w", err)
		}
		if header == nil {
			header = page.Header
			opts = append(opts, clientv3.WithRev(header.GetRevision()))
		}
		kvs = append(kvs, page.Kvs...)
		if !page.More {
			break
		}
		from = string(page.Kvs[len(page.Kvs)-1].GetKey()) + "\x00"
	}
	other := c.cluster != header.GetClusterId() || header.GetRevision() < c.shownRevision()
	c.cluster = header.GetClusterId()
	c.publishList(kvs, header.GetRevision(), other)
	c.heard()
	return nil
}

// get reads from etcd with a timeout.
func (c *Cache) get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, c.opts.Timeout)
	defer cancel()
	return c.kv.Get(ctx, key, opts...)
}

// refresh publishes the latest state of etcd, unless Run does.
func (c *Cache) refresh(ctx context.Context) error {
	return c.whileNotRunning(ctx, func() error {
		now, err := c.get(ctx, c.keys.prefix, clientv3.WithRange(c.keys.end()), clientv3.WithCountOnly())
		if err != nil {
			c.lost(err)
			return c.requestError(err)
		}
		upTo := now.Header.GetRevision()
		for {
			err := c.catchUp(ctx, func(current int64) bool { return current >= upTo || c.shownRevision() >= upTo })
			if !errors.Is(err, errCompacted) {
				return err
			}
		}
	})
}

// catchUp reads from etcd on the caller's goroutine until done returns true. The caller holds the
// token of feeding.
func (c *Cache) catchUp(ctx context.Context, done func(current int64) bool) error {
	s, err := c.attach(ctx)
	if err == nil {
		err = c.pump(ctx, s, catchUpInterval, c.opts.Timeout, done)
		s.close()
	}
	if err != nil && !errors.Is(err, errCompacted) {
		c.lost(err)
	}
	return err
}

// whileNotRunning calls f with the token of feeding, unless Run runs.
func (c *Cache) whileNotRunning(ctx context.Context, f func() error) error {
	for {
		_, running, changed := c.progress()
		if running {
			return nil
		}
		select {
		case c.feeding <- struct{}{}:
			defer func() { <-c.feeding }()
			return f()
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// await returns once a revision is published.
func (c *Cache) await(ctx context.Context, revision int64) error {
	for {
		shown, running, changed := c.progress()
		switch {
		case shown >= revision:
			return nil
		case !running:
			err := c.whileNotRunning(ctx, func() error {
				return c.catchUp(ctx, func(int64) bool { return c.shownRevision() >= revision })
			})
			if err != nil && !errors.Is(err, errCompacted) {
				return err
			}
		default:
			select {
			case <-changed:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}
}
