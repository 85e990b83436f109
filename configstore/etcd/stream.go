// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
)

// stream is one watch of all keys below the prefix, on a connection that is not replaced when it
// breaks.
type stream struct {
	watch     etcdserverpb.Watch_WatchClient
	responses chan *etcdserverpb.WatchResponse
	cancel    context.CancelFunc
	receiver  sync.WaitGroup
	// err is the reason why responses was closed.
	err error
}

// open begins a watch from a revision. The caller closes the stream. The watcher of clientv3 is not
// suitable, because it retries without reporting errors, which would hide staleness.
func (c *Cache) open(ctx context.Context, from int64) (*stream, error) {
	// A member without a leader would otherwise be silent.
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	// A server sends up to 1,000 missed transactions in one response. Fragments keep a long
	// transfer from looking like silence. One object may still be larger than gRPC's default limit.
	watch, err := etcdserverpb.NewWatchClient(c.client.ActiveConnection()).Watch(ctx, grpc.MaxCallRecvMsgSize(math.MaxInt32))
	if err == nil {
		err = watch.Send(&etcdserverpb.WatchRequest{RequestUnion: &etcdserverpb.WatchRequest_CreateRequest{
			CreateRequest: &etcdserverpb.WatchCreateRequest{
				Key: []byte(c.keys.prefix), RangeEnd: []byte(c.keys.end()), StartRevision: from, Fragment: true,
			},
		}})
	}
	if err != nil {
		cancel()
		return nil, fmt.Errorf("watch: %w", err)
	}
	s := &stream{watch: watch, responses: make(chan *etcdserverpb.WatchResponse), cancel: cancel}
	s.receiver.Go(func() { s.receive(ctx) })
	return s, nil
}

// receive passes on the server's responses. It passes fragments on without events, to show that the
// server is alive, and delivers their events with the last fragment, because a transaction may span
// several fragments.
func (s *stream) receive(ctx context.Context) {
	defer close(s.responses)
	var held []*mvccpb.Event
	for {
		response, err := s.watch.Recv()
		if err != nil {
			s.err = fmt.Errorf("watch: %w", err)
			return
		}
		if response.GetFragment() {
			held, response.Events = append(held, response.GetEvents()...), nil
		} else if len(held) > 0 {
			held, response.Events = nil, append(held, response.GetEvents()...)
		}
		select {
		case s.responses <- response:
		case <-ctx.Done():
			s.err = ctx.Err()
			return
		}
	}
}

// requestProgress requests the server's revision, which the server sends once it has sent all
// events up to it. An error appears in the responses.
func (s *stream) requestProgress() {
	_ = s.watch.Send(&etcdserverpb.WatchRequest{RequestUnion: &etcdserverpb.WatchRequest_ProgressRequest{
		ProgressRequest: &etcdserverpb.WatchProgressRequest{},
	}})
}

// close ends the watch.
func (s *stream) close() {
	s.cancel()
	s.receiver.Wait()
}

// errCompacted means that a watch cannot continue, because its next events are compacted.
var errCompacted = errors.New("the revision to watch from is compacted")

// errNoProgress means that a watch was closed because the server was silent.
var errNoProgress = errors.New("no response")

// cancelled returns the reason why the server has ended a watch, or nil.
func cancelled(r *etcdserverpb.WatchResponse) error {
	switch {
	case r.GetCompactRevision() > 0:
		return fmt.Errorf("%w: %d", errCompacted, r.GetCompactRevision())
	case r.GetCanceled():
		return fmt.Errorf("watch: the server has ended it: %s", r.GetCancelReason())
	}
	return nil
}
