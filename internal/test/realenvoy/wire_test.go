// SPDX-License-Identifier: Apache-2.0

package realenvoy

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/pilotkit/pilotkit/internal/test/envoyproxy"
)

// wire remembers the last messages between servers and Envoys, and can be cut.
type wire struct {
	begun time.Time

	mu    sync.Mutex
	lines []string
	// left is how many responses there may be until the wire is cut; below 0: any number.
	left int
	cut  chan struct{} // closed when it is cut
}

func newWire() *wire { return &wire{begun: time.Now(), left: -1, cut: make(chan struct{})} }

// maxLines is how many messages are remembered.
const maxLines = 2000

func (w *wire) note(format string, args ...any) {
	line := fmt.Sprintf("%10.3f ", float64(time.Since(w.begun))/float64(time.Millisecond)) + fmt.Sprintf(format, args...)
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.lines) == maxLines {
		w.lines = append(w.lines[:0], w.lines[maxLines/2:]...)
	}
	w.lines = append(w.lines, line)
}

// text returns the recorded messages.
func (w *wire) text() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.lines, "\n")
}

// cutAfter lets some more responses pass and none after them. The channel is closed with
// the first that does not.
func (w *wire) cutAfter(responses int) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.left, w.cut = responses, make(chan struct{})
	return w.cut
}

// mend lets all responses pass.
func (w *wire) mend() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.left = -1
}

// passes reports whether a response may pass.
func (w *wire) passes() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.left < 0:
		return true
	case w.left > 0:
		w.left--
		return true
	}
	select {
	case <-w.cut:
	default:
		close(w.cut)
	}
	return false
}

// intercept is a grpc.StreamServerInterceptor.
func (w *wire) intercept(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	name := envoyproxy.NodeOf(stream.Context())
	if fields := strings.Split(name, "~"); len(fields) > 2 {
		name, _, _ = strings.Cut(fields[2], ".")
	}
	w.note("%s begins", name)
	err := handle(srv, &wiredStream{ServerStream: stream, wire: w, node: name, delta: strings.Contains(info.FullMethod, "Delta")})
	w.note("%s ends: %v", name, err)
	return err
}

// wiredStream is a stream of one Envoy.
type wiredStream struct {
	grpc.ServerStream
	wire  *wire
	node  string
	delta bool
}

// SendMsg implements grpc.ServerStream.
func (s *wiredStream) SendMsg(m any) error {
	if !s.wire.passes() {
		s.wire.note("%s cut", s.node)
		return status.Error(codes.Unavailable, "cut")
	}
	if r, ok := m.(proto.Message); ok {
		s.wire.note("→ %s %s", s.node, describeEncoded(r))
	}
	return s.ServerStream.SendMsg(m)
}

// RecvMsg implements grpc.ServerStream. The server's request type cannot be read, so requests are
// decoded first.
func (s *wiredStream) RecvMsg(m any) error {
	request, ok := m.(proto.Message)
	if !ok {
		return s.ServerStream.RecvMsg(m)
	}
	var as proto.Message = &discovery.DiscoveryRequest{}
	if s.delta {
		as = &discovery.DeltaDiscoveryRequest{}
	}
	if err := s.ServerStream.RecvMsg(as); err != nil {
		return err
	}
	s.wire.note("← %s %s", s.node, describe(as))
	data, err := proto.Marshal(as)
	if err != nil {
		return err
	}
	return proto.Unmarshal(data, request)
}

// describeEncoded describes a message that the server keeps encoded.
func describeEncoded(m proto.Message) string {
	data, err := proto.Marshal(m)
	if err != nil {
		return err.Error()
	}
	again := m.ProtoReflect().New().Interface()
	if err := proto.Unmarshal(data, again); err != nil {
		return err.Error()
	}
	return describe(again)
}

// describe summarizes a message in a line.
func describe(m proto.Message) string {
	switch m := m.(type) {
	case *discovery.DiscoveryResponse:
		return fmt.Sprintf("%s %s: %s", kindOf(m.GetTypeUrl()), m.GetNonce(), names(m.GetResources()))
	case *discovery.DeltaDiscoveryResponse:
		var packed []*anypb.Any
		for _, r := range m.GetResources() {
			packed = append(packed, r.GetResource())
		}
		return fmt.Sprintf("%s %s: %s, without %s", kindOf(m.GetTypeUrl()), m.GetNonce(), names(packed), m.GetRemovedResources())
	case *discovery.DiscoveryRequest:
		return fmt.Sprintf("%s answers %q, asks for %s %s", kindOf(m.GetTypeUrl()), m.GetResponseNonce(), m.GetResourceNames(), m.GetErrorDetail().GetMessage())
	case *discovery.DeltaDiscoveryRequest:
		return fmt.Sprintf("%s answers %q, asks for %s, not for %s, has %d %s", kindOf(m.GetTypeUrl()), m.GetResponseNonce(),
			m.GetResourceNamesSubscribe(), m.GetResourceNamesUnsubscribe(), len(m.GetInitialResourceVersions()), m.GetErrorDetail().GetMessage())
	default:
		return fmt.Sprintf("%T", m)
	}
}

func kindOf(typeURL string) string { return typeURL[strings.LastIndexByte(typeURL, '.')+1:] }

// clusterName finds the clusters that a resource names.
var clusterName = regexp.MustCompile(`outbound\|\d+\|[\w-]*\|[\w.-]+`)

// names are the names of resources, the first field of every type, and of routes and listeners with
// the clusters that they reference.
func names(packed []*anypb.Any) []string {
	out := make([]string, 0, len(packed))
	for _, p := range packed {
		_, kind, n := protowire.ConsumeTag(p.GetValue())
		value, m := protowire.ConsumeBytes(p.GetValue()[max(0, n):])
		if kind != protowire.BytesType || m <= 0 {
			continue
		}
		name := string(value)
		if refers := kindOf(p.GetTypeUrl()); refers == "RouteConfiguration" || refers == "Listener" {
			name += fmt.Sprintf(" to %s", clusterName.FindAll(p.GetValue(), -1))
		}
		out = append(out, name)
	}
	return out
}
