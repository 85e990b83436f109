// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	cachev3 "github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	serverv3 "github.com/envoyproxy/go-control-plane/pkg/server/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/anypb"
	mcp "istio.io/api/mcp/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/internal/test/tier"
)

// thirdParty is a server made of go-control-plane: its streams, its LinearCaches for delta, and for
// SotW a cache that responds with the whole state, as MCP requires (a LinearCache responds with the
// changes for all types but those of Envoy).
type thirdParty struct {
	linear cachev3.MuxCache

	mu      sync.Mutex
	kinds   map[string]map[string]*mcp.Resource
	version map[string]int
	watches map[int]thirdPartyWatch
	next    int
}

type thirdPartyWatch struct {
	request *cachev3.Request
	to      chan cachev3.Response
}

func newThirdParty(kinds ...configstore.GroupVersionKind) *thirdParty {
	s := &thirdParty{
		kinds: map[string]map[string]*mcp.Resource{}, version: map[string]int{}, watches: map[int]thirdPartyWatch{},
		linear: cachev3.MuxCache{
			Caches:        map[string]cachev3.Cache{},
			ClassifyDelta: func(r *cachev3.DeltaRequest) string { return r.GetTypeUrl() },
		},
	}
	for _, kind := range kinds {
		s.kinds[typeURL(kind)] = map[string]*mcp.Resource{}
		s.linear.Caches[typeURL(kind)] = cachev3.NewLinearCache(typeURL(kind))
	}
	return s
}

func (s *thirdParty) service(ctx context.Context) discovery.AggregatedDiscoveryServiceServer {
	return serverv3.NewServer(ctx, s, nil)
}

// set replaces the objects of a kind.
func (s *thirdParty) set(kind configstore.GroupVersionKind, objects map[string]*mcp.Resource) {
	url := typeURL(kind)
	s.mu.Lock()
	s.kinds[url] = maps.Clone(objects)
	s.version[url]++
	for id, w := range s.watches {
		if w.request.GetTypeUrl() == url {
			delete(s.watches, id)
			w.to <- s.response(w.request)
		}
	}
	s.mu.Unlock()
	linear := make(map[string]types.Resource, len(objects))
	for name, object := range objects {
		linear[name] = object
	}
	s.linear.Caches[url].(*cachev3.LinearCache).SetResources(linear)
}

func (s *thirdParty) response(r *cachev3.Request) cachev3.Response {
	url := r.GetTypeUrl()
	out := &discovery.DiscoveryResponse{TypeUrl: url, VersionInfo: strconv.Itoa(s.version[url])}
	for _, name := range slices.Sorted(maps.Keys(s.kinds[url])) {
		resource, err := anypb.New(s.kinds[url][name])
		if err != nil {
			panic(err)
		}
		out.Resources = append(out.Resources, resource)
	}
	return &cachev3.PassthroughResponse{Request: r, DiscoveryResponse: out}
}

func (s *thirdParty) CreateWatch(r *cachev3.Request, _ cachev3.Subscription, to chan cachev3.Response) (func(), error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.GetVersionInfo() != strconv.Itoa(s.version[r.GetTypeUrl()]) {
		to <- s.response(r)
		return nil, nil
	}
	s.next++
	id := s.next
	s.watches[id] = thirdPartyWatch{r, to}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watches, id)
	}, nil
}

func (s *thirdParty) CreateDeltaWatch(r *cachev3.DeltaRequest, sub cachev3.Subscription, to chan cachev3.DeltaResponse) (func(), error) {
	return s.linear.CreateDeltaWatch(r, sub, to)
}

func (*thirdParty) Fetch(context.Context, *cachev3.Request) (cachev3.Response, error) {
	return nil, fmt.Errorf("fetch: %w", status.Error(codes.Unimplemented, "not here"))
}

// cutter is a connection whose streams can be cut, at a message that is counted or now.
type cutter struct {
	grpc.ClientConnInterface
	mu sync.Mutex
	// left is how many messages are passed on before the next cut; negative: all.
	left   int
	passed int
	cancel context.CancelFunc
}

func (c *cutter) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	ctx, cancel := context.WithCancel(ctx)
	c.mu.Lock()
	c.cancel = cancel
	c.mu.Unlock()
	stream, err := c.ClientConnInterface.NewStream(ctx, desc, method, opts...)
	if err != nil {
		cancel()
		return nil, err
	}
	return &cutStream{stream, c, cancel}, nil
}

// cut ends the open stream.
func (c *cutter) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cancel != nil {
		c.cancel()
	}
}

// pass reports whether a message is passed on.
func (c *cutter) pass() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left--
	c.passed++
	return c.left != -1
}

type cutStream struct {
	grpc.ClientStream
	cutter *cutter
	cancel context.CancelFunc
}

func (s *cutStream) SendMsg(m any) error {
	if !s.cutter.pass() {
		s.cancel()
		return status.Error(codes.Unavailable, "cut at a request")
	}
	return s.ClientStream.SendMsg(m)
}

func (s *cutStream) RecvMsg(m any) error {
	if err := s.ClientStream.RecvMsg(m); err != nil {
		return err
	}
	if !s.cutter.pass() {
		s.cancel()
		return status.Error(codes.Unavailable, "cut at a response")
	}
	return nil
}

// history is a sequence of changes of a server with the expected content of a store.
type history struct {
	rand   *rand.Rand
	set    func(kind configstore.GroupVersionKind, objects map[string]*mcp.Resource)
	server map[configstore.GroupVersionKind]map[string]*mcp.Resource
	// want is the spec of each object, as text.
	want map[configstore.ConfigKey]string
}

func newHistory(seed uint64, set func(configstore.GroupVersionKind, map[string]*mcp.Resource)) *history {
	return &history{
		rand: rand.New(rand.NewPCG(seed, 1)), set: set, want: map[configstore.ConfigKey]string{},
		server: map[configstore.GroupVersionKind]map[string]*mcp.Resource{istio.ServiceEntry: {}, istio.WorkloadEntry: {}},
	}
}

// step changes one kind, with bad objects among others if that is allowed.
func (h *history) step(t *testing.T, bad bool) {
	t.Helper()
	kind := istio.ServiceEntry
	if h.rand.IntN(2) == 0 {
		kind = istio.WorkloadEntry
	}
	objects := h.server[kind]
	if h.rand.IntN(10) == 0 {
		clear(objects)
	}
	for range 1 + h.rand.IntN(4) {
		name := "default/" + string(rune('a'+h.rand.IntN(8)))
		switch n := h.rand.IntN(10); {
		case n < 3:
			delete(objects, name)
		case n < 5 && bad:
			objects[name] = &mcp.Resource{Metadata: &mcp.Metadata{Name: name, Version: strconv.Itoa(h.rand.IntN(1000))}}
		default:
			objects[name] = h.object(t, kind, name)
		}
	}
	if !bad {
		for name, r := range objects {
			if r.GetBody() == nil {
				delete(objects, name)
			}
		}
	}
	h.set(kind, objects)
}

// object returns a good object.
func (h *history) object(t *testing.T, kind configstore.GroupVersionKind, name string) *mcp.Resource {
	t.Helper()
	n := h.rand.IntN(5)
	m := &mcp.Metadata{Name: name, Version: strconv.Itoa(n), Labels: map[string]string{"n": strconv.Itoa(n)}}
	if kind == istio.WorkloadEntry {
		return &mcp.Resource{Metadata: m, Body: pack(t, &networking.WorkloadEntry{Address: "10.0.0." + strconv.Itoa(n)})}
	}
	return &mcp.Resource{Metadata: m, Body: pack(t, entry("default", "x", strconv.Itoa(n)+".example.com").Spec)}
}

// check compares the store with the server. The store keeps the previous state of bad objects.
func (h *history) check(t *testing.T, when string, store configstore.Reader) {
	t.Helper()
	want, got := map[configstore.ConfigKey]string{}, map[configstore.ConfigKey]string{}
	for kind, objects := range h.server {
		for name, r := range objects {
			n, ns, _ := splitName(name)
			key := configstore.ConfigKey{Kind: kind, Name: n, Namespace: ns}
			if r.GetBody() != nil {
				spec, err := r.GetBody().UnmarshalNew()
				if err != nil {
					t.Fatal(err)
				}
				want[key] = fmt.Sprint(spec) + r.GetMetadata().GetLabels()["n"]
			} else if before, ok := h.want[key]; ok {
				want[key] = before
			}
		}
		for _, c := range store.List(kind, "") {
			got[c.Key()] = fmt.Sprint(c.Spec) + c.Labels["n"]
		}
	}
	h.want = want
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: %s", when, diff)
	}
}

// TestThirdPartyServer: after every change of a random history, with cut streams and bad objects,
// the store has the content of the server.
func TestThirdPartyServer(t *testing.T) {
	seeds, steps := 3, 50
	if !tier.Full() {
		seeds, steps = 1, 30
	}
	for _, delta := range []bool{false, true} {
		for seed := range seeds {
			t.Run(fmt.Sprintf("delta=%v,seed=%d", delta, seed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					server := newThirdParty(istio.ServiceEntry, istio.WorkloadEntry)
					conn, closed := serveADS(t, server.service(t.Context()))
					defer closed()
					cut := &cutter{ClientConnInterface: conn, left: -1}
					store := newStore()
					o := only(istio.ServiceEntry, istio.WorkloadEntry)
					o.Delta = delta
					source := NewSource(cut, store, o)
					defer run(source)()
					h := newHistory(uint64(seed), server.set)
					for i := range steps {
						if h.rand.IntN(4) == 0 {
							cut.cut()
						}
						h.step(t, true)
						time.Sleep(3 * time.Minute) // longer than any back-off
						synctest.Wait()
						h.check(t, strconv.Itoa(i), store)
						if s := source.Status(); s.Stale() || !source.HasSynced() || s.Delta != delta {
							t.Errorf("%d: status %+v", i, s)
						}
					}
					h.step(t, false)
					time.Sleep(3 * time.Minute)
					synctest.Wait()
					h.check(t, "in the end", store)
				})
			})
		}
	}
}

// TestCutAtEveryMessage: wherever a stream is cut, the store ends with the content of the server,
// and never has content that the server did not have.
func TestCutAtEveryMessage(t *testing.T) {
	for _, delta := range []bool{false, true} {
		t.Run(fmt.Sprintf("delta=%v", delta), func(t *testing.T) {
			for at, more := 0, true; more; at++ {
				synctest.Test(t, func(t *testing.T) { more = cutAt(t, delta, at) })
			}
		})
	}
}

// cutAt cuts the streams after a number of messages, and reports whether there were that
// many.
func cutAt(t *testing.T, delta bool, at int) bool {
	t.Helper()
	server := newThirdParty(istio.ServiceEntry, istio.WorkloadEntry)
	conn, closed := serveADS(t, server.service(t.Context()))
	defer closed()
	cut := &cutter{ClientConnInterface: conn, left: at}
	store := newStore()
	o := only(istio.ServiceEntry, istio.WorkloadEntry)
	o.Delta = delta
	h := newHistory(1, server.set)
	for range 3 {
		h.step(t, false)
	}
	defer run(NewSource(cut, store, o))()
	for range 4 {
		time.Sleep(3 * time.Minute)
		synctest.Wait()
		h.check(t, "cut at message "+strconv.Itoa(at), store)
		h.step(t, false)
	}
	time.Sleep(3 * time.Minute)
	synctest.Wait()
	h.check(t, "cut at message "+strconv.Itoa(at), store)
	cut.mu.Lock()
	defer cut.mu.Unlock()
	return cut.passed > at
}
