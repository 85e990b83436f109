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

// stream is one watch of everything below the prefix, on a connection that is not
// replaced when it breaks.
type stream struct {
	watch     etcdserverpb.Watch_WatchClient
	responses chan *etcdserverpb.WatchResponse
	cancel    context.CancelFunc
	receiver  sync.WaitGroup
	// err is why responses was closed.
	err error
}

// open begins to watch from a revision. The stream is to be closed.
func (c *Cache) open(ctx context.Context, from int64) (*stream, error) {
	// A member without a leader would keep silent.
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	// A server tells of up to 1,000 transactions that were missed in one response. It comes in
	// fragments, so that how long it takes is no silence; one object may still be larger than
	// what gRPC takes by default.
	watch, err := c.remote().Watch(ctx, grpc.MaxCallRecvMsgSize(math.MaxInt32))
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

// receive hands on what the server sends. Fragments come as signs of life without events, which
// the last one has: one transaction may be in several.
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

// requestProgress asks the server to tell its revision, which it does when it has told
// everything up to it. An error shows in the responses.
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

// errCompacted is why a watch cannot go on: what it would tell next is not known any more.
var errCompacted = errors.New("the revision to watch from is compacted")

// errNoProgress is why a watch is given up that nothing comes from.
var errNoProgress = errors.New("no sign of life")

// cancelled returns why the server has ended a watch, or nil.
func cancelled(r *etcdserverpb.WatchResponse) error {
	switch {
	case r.GetCompactRevision() > 0:
		return fmt.Errorf("%w: %d", errCompacted, r.GetCompactRevision())
	case r.GetCanceled():
		return fmt.Errorf("watch: the server has ended it: %s", r.GetCancelReason())
	}
	return nil
}
