// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"math"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	rpc "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	mcp "istio.io/api/mcp/v1alpha1"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/internal/test/memnet"
)

// controlPlane returns the node of a control plane, as Istio's client says it.
func controlPlane(id, revision string) *core.Node {
	fields := map[string]any{"GENERATOR": "api", "ISTIO_VERSION": "65536.65536.65536"}
	if revision != "" {
		fields["ISTIO_REVISION"] = revision
	}
	metadata, err := structpb.NewStruct(fields)
	if err != nil {
		panic(err)
	}
	return &core.Node{Id: "sidecar~10.0.0.1~" + id + ".istio-system~istio-system.svc.cluster.local", Metadata: metadata}
}

func dial(tb testing.TB, listener *memnet.Listener) *grpc.ClientConn {
	tb.Helper()
	conn, err := grpc.NewClient("passthrough:memory",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(math.MaxInt32)),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.Dial(ctx) }))
	if err != nil {
		tb.Fatal(err)
	}
	return conn
}

// gotResponse is the content of one response.
type gotResponse struct {
	typeURL        string
	names, removed []string // sorted
}

// answers is the common part of both clients: the received responses, and the current objects.
type answers struct {
	tb testing.TB
	// refuse returns the reason to reject a response, or "" to accept it.
	refuse func(gotResponse) string
	done   chan struct{}
	end    func() // ends the stream and waits for that

	mu       sync.Mutex
	has      map[string]map[string]*mcp.Resource
	versions map[string]map[string]string // delta
	log      []gotResponse
	sums     map[string]string // the versions of the last responses, by type
	err      error             // of the ended stream
}

func newAnswers(tb testing.TB) *answers {
	tb.Helper()
	return &answers{
		tb: tb, done: make(chan struct{}), has: make(map[string]map[string]*mcp.Resource),
		versions: make(map[string]map[string]string), sums: make(map[string]string),
	}
}

// take returns the responses since the last call, in order of arrival.
func (a *answers) take() []gotResponse {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := a.log
	a.log = nil
	return out
}

// kindOf returns the kind that a type URL names; false if it has not the form of one.
func kindOf(typeURL string) (kind configstore.GroupVersionKind, ok bool) {
	parts := strings.Split(typeURL, "/")
	if len(parts) != 3 {
		return kind, false
	}
	if parts[0] == "core" {
		parts[0] = ""
	}
	return configstore.GroupVersionKind{Group: parts[0], Version: parts[1], Kind: parts[2]}, true
}

// contents returns the client's objects of the kinds in istio.Schemas, of the types with a
// response.
func (a *answers) contents() contents {
	a.tb.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	out := make(contents)
	for typeURL, resources := range a.has {
		kind, ok := kindOf(typeURL)
		schema, known := istio.Schemas().Find(kind)
		if !ok || !known {
			if len(resources) > 0 {
				a.tb.Errorf("%d resources of %s", len(resources), typeURL)
			}
			continue
		}
		out[typeURL] = make(map[string]configstore.Config)
		for name, r := range resources {
			c, err := decode(pack(a.tb, r), &schema)
			if err != nil || c.ResourceVersion == "" || r.GetMetadata().GetName() != name {
				a.tb.Errorf("%s %s: version %q, named %q: %v", typeURL, name, c.ResourceVersion, r.GetMetadata().GetName(), err)
			}
			out[typeURL][name] = travelled(&c)
		}
	}
	return out
}

// version returns the version of a resource, "" if the client does not have it.
func (a *answers) version(kind configstore.GroupVersionKind, name string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.has[typeURL(kind)][name].GetMetadata().GetVersion()
}

// judge records a response and returns why it is refused.
func (a *answers) judge(r gotResponse) string {
	slices.Sort(r.names)
	slices.Sort(r.removed)
	a.log = append(a.log, r)
	if a.refuse == nil {
		return ""
	}
	return a.refuse(r)
}

// run handles responses until the stream ends.
func (a *answers) run(next func() error, cancel func(), conn *grpc.ClientConn) {
	a.end = sync.OnceFunc(func() {
		cancel()
		<-a.done
		_ = conn.Close()
	})
	a.tb.Cleanup(a.end)
	go func() {
		defer close(a.done)
		for {
			if err := next(); err != nil {
				a.mu.Lock()
				a.err = err
				a.mu.Unlock()
				return
			}
		}
	}()
}

// ended returns the error of the ended stream, or nil while it is open.
func (a *answers) ended() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}

// decodeResource fails the test for a resource that is not as MCP wants it.
func decodeResource(tb testing.TB, typeURL string, value []byte) *mcp.Resource {
	tb.Helper()
	m := &mcp.Resource{}
	if typeURL != "type.googleapis.com/istio.mcp.v1alpha1.Resource" {
		tb.Errorf("a resource is a %q", typeURL)
	} else if err := proto.Unmarshal(value, m); err != nil {
		tb.Error(err)
	}
	return m
}

// stockClient is a client by SotW that speaks as Istio's does: it asks for all types at
// once, with the node in the first request and the time for a nonce, answers each response
// with the version, the nonce and the node, takes a response for all that there is of a
// type, and never answers MeshConfig.
func stockClient(tb testing.TB, listener *memnet.Listener, node *core.Node, refuse func(gotResponse) string, types ...string) *answers {
	tb.Helper()
	a := newAnswers(tb)
	a.refuse = refuse
	conn := dial(tb, listener)
	ctx, cancel := context.WithCancel(context.Background())
	stream, err := discovery.NewAggregatedDiscoveryServiceClient(conn).StreamAggregatedResources(ctx)
	if err != nil {
		tb.Fatal(err)
	}
	send := func(r *discovery.DiscoveryRequest) {
		if err := stream.Send(r); err != nil && ctx.Err() == nil && !strings.Contains(err.Error(), "EOF") {
			tb.Error(err)
		}
	}
	for i, typeURL := range types {
		first := node
		if i > 0 {
			first = nil
		}
		send(&discovery.DiscoveryRequest{Node: first, TypeUrl: typeURL, ResponseNonce: time.Now().String()})
	}
	accepted := make(map[string]string)
	a.run(func() error {
		m, err := stream.Recv()
		if err != nil {
			return err
		}
		a.mu.Lock()
		r, has := gotResponse{typeURL: m.GetTypeUrl()}, make(map[string]*mcp.Resource)
		for _, one := range m.GetResources() {
			resource := decodeResource(tb, one.GetTypeUrl(), one.GetValue())
			name := resource.GetMetadata().GetName()
			r.names, has[name] = append(r.names, name), resource
		}
		why := a.judge(r)
		if why == "" {
			a.has[r.typeURL], accepted[r.typeURL] = has, m.GetVersionInfo()
		}
		a.sums[r.typeURL] = m.GetVersionInfo()
		a.mu.Unlock()
		if r.typeURL == meshConfig {
			return nil
		}
		answer := &discovery.DiscoveryRequest{Node: node, TypeUrl: r.typeURL, ResponseNonce: m.GetNonce(), VersionInfo: accepted[r.typeURL]}
		if why != "" {
			answer.ErrorDetail = &rpc.Status{Code: 3, Message: why}
		}
		send(answer)
		return nil
	}, cancel, conn)
	return a
}

// deltaClient is a delta client that reconnects with the objects of another one; nil starts without
// objects.
func deltaClient(tb testing.TB, listener *memnet.Listener, node *core.Node, before *answers, types ...string) *answers {
	tb.Helper()
	return deltaClientOf(tb, listener, node, before, nil, types...)
}

// deltaClientOf is deltaClient of one that may refuse responses, and keeps them all the same.
func deltaClientOf(
	tb testing.TB, listener *memnet.Listener, node *core.Node, before *answers, refuse func(gotResponse) string, types ...string,
) *answers {
	tb.Helper()
	a := newAnswers(tb)
	a.refuse = refuse
	if before != nil {
		a.has, a.versions = before.has, before.versions
	}
	conn := dial(tb, listener)
	ctx, cancel := context.WithCancel(context.Background())
	stream, err := discovery.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(ctx)
	if err != nil {
		tb.Fatal(err)
	}
	send := func(r *discovery.DeltaDiscoveryRequest) {
		if err := stream.Send(r); err != nil && ctx.Err() == nil && !strings.Contains(err.Error(), "EOF") {
			tb.Error(err)
		}
	}
	for _, typeURL := range types {
		send(&discovery.DeltaDiscoveryRequest{
			Node: node, TypeUrl: typeURL, ResponseNonce: time.Now().String(), InitialResourceVersions: a.versions[typeURL],
		})
	}
	a.run(func() error {
		m, err := stream.Recv()
		if err != nil {
			return err
		}
		a.mu.Lock()
		r := gotResponse{typeURL: m.GetTypeUrl(), removed: m.GetRemovedResources()}
		if a.has[r.typeURL] == nil {
			a.has[r.typeURL], a.versions[r.typeURL] = make(map[string]*mcp.Resource), make(map[string]string)
		}
		for _, one := range m.GetResources() {
			resource := decodeResource(tb, one.GetResource().GetTypeUrl(), one.GetResource().GetValue())
			if name := resource.GetMetadata().GetName(); name != one.GetName() {
				tb.Errorf("%q is named %q inside", one.GetName(), name)
			}
			r.names = append(r.names, one.GetName())
			a.has[r.typeURL][one.GetName()], a.versions[r.typeURL][one.GetName()] = resource, one.GetVersion()
		}
		for _, name := range r.removed {
			delete(a.has[r.typeURL], name)
			delete(a.versions[r.typeURL], name)
		}
		why := a.judge(r)
		a.mu.Unlock()
		answer := &discovery.DeltaDiscoveryRequest{TypeUrl: r.typeURL, ResponseNonce: m.GetNonce()}
		if why != "" {
			answer.ErrorDetail = &rpc.Status{Code: 3, Message: why}
		}
		if r.typeURL != meshConfig {
			send(answer)
		}
		return nil
	}, cancel, conn)
	return a
}
