// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/pilotkit/pilotkit/internal/envoycheck"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// node returns a client: "sidecar", "router", or "grpc" for a gRPC client of Istio's
// bootstrap. Metadata has pairs of keys and values, which are strings or maps.
func node(kind string, metadata ...any) *core.Node {
	fields := map[string]any{"LABELS": map[string]any{"app": "edge"}}
	for i := 0; i < len(metadata); i += 2 {
		fields[metadata[i].(string)] = metadata[i+1]
	}
	if kind == "grpc" {
		kind, fields["GENERATOR"] = "sidecar", "grpc"
	}
	made, err := structpb.NewStruct(fields)
	if err != nil {
		panic(err)
	}
	return &core.Node{Id: kind + "~10.9.9.1~client.shop~shop.svc.cluster.local", Metadata: made}
}

// in returns a client of a kind, as node does, of a namespace, with labels "key=value".
func in(kind, namespace string, labels ...string) *core.Node {
	all := make(map[string]any)
	for _, l := range labels {
		key, value, _ := strings.Cut(l, "=")
		all[key] = value
	}
	return node(kind, "NAMESPACE", namespace, "LABELS", all)
}

// edge is the router that the Gateways of tests are for.
func edge() *core.Node { return in("router", "ingress", "app=edge") }

// at returns a client with another address.
func at(n *core.Node, address string) *core.Node {
	out := proto.CloneOf(n)
	out.Metadata.Fields["INSTANCE_IPS"] = structpb.NewStringValue(address)
	return out
}

// isGRPC reports whether a client is a gRPC client.
func isGRPC(n *core.Node) bool { return n.GetMetadata().GetFields()["GENERATOR"] != nil }

// accepted returns why a client would refuse a resource.
func accepted(n *core.Node, m proto.Message) error {
	if isGRPC(n) {
		return envoycheck.GRPC(m)
	}
	return envoycheck.Envoy(m)
}

// connect returns a client that is subscribed to nothing; every resource that it is
// sent has to be valid.
func (s *scene) connect(n *core.Node) *xdstest.Client {
	s.t.Helper()
	c := xdstest.NewClient(s.conn, xdstest.ClientOptions{Node: n, Delta: true, Answer: func(r xdstest.Response) error {
		for _, resource := range r.Resources {
			m, err := resource.Message()
			if err == nil {
				err = accepted(n, m)
			}
			if err != nil {
				s.t.Errorf("%s: %v", resource.Name, err)
			}
		}
		return nil
	}})
	s.must(c.Connect(s.t.Context()))
	s.t.Cleanup(c.Close)
	return c
}

// await waits until what a client has accepted is as wanted.
func (s *scene) await(c *xdstest.Client, wanted func(xdstest.State) bool) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), testTimeout)
	defer cancel()
	s.must(c.Await(ctx, wanted))
}

// answer is what a client is sent of one type.
type answer struct {
	names     []string // those that it is sent, sorted
	resources map[string]proto.Message
	// failed is what is left out, or why nothing can be made, by name.
	failed map[string]string
}

// ask returns what a new client is sent of a type by names, or, without names, of all.
func (s *scene) ask(n *core.Node, typeURL string, names ...string) answer {
	s.t.Helper()
	out := answer{resources: make(map[string]proto.Message), failed: make(map[string]string)}
	n = s.numbered(n)
	c := s.connect(n)
	defer c.Close()
	s.must(c.Subscribe(typeURL, orAll(names)...))
	s.answered(c)
	for name, r := range c.State().Resources(typeURL) {
		m, err := r.Message()
		s.must(err)
		out.resources[name] = m
	}
	out.names = slices.Sorted(maps.Keys(out.resources))
	faults, _ := s.server.Faults()
	for _, f := range faults {
		if f.TypeURL == typeURL && f.Stream == s.status(n).Stream {
			out.failed[f.Name] = reasons(f.Text)
		}
	}
	return out
}

// reasons returns what the policies say of a failure, a line each.
func reasons(failure string) string {
	var out []string
	for line := range strings.Lines(failure) {
		out = append(out, strings.TrimPrefix(line[max(0, strings.Index(line, "traffic: ")):], "traffic: "))
	}
	return strings.Join(out, "")
}

// orAll returns names, or if there are none that of a wildcard subscription.
func orAll(names []string) []string {
	if len(names) == 0 {
		return []string{"*"}
	}
	return names
}

// answered waits until a client that has subscribed has all that there is for it.
func (s *scene) answered(c *xdstest.Client) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), testTimeout)
	defer cancel()
	_, err := c.Next(ctx) // then the server knows of the subscription
	s.must(err)
	s.applied()
}

// numbered returns a client with an ID of its own: a stream that has ended may still be
// known to the server.
func (s *scene) numbered(n *core.Node) *core.Node {
	s.clients++
	out := proto.CloneOf(n)
	out.Id = strings.Replace(n.GetId(), "~client", fmt.Sprintf("~client-%d", s.clients), 1)
	return out
}

// status returns what the server knows of a connected client.
func (s *scene) status(n *core.Node) ads.ProxyStatus {
	s.t.Helper()
	for _, p := range s.server.Proxies() {
		if p.ID == n.GetId() {
			return p
		}
	}
	s.t.Fatalf("%s is not connected", n.GetId())
	return ads.ProxyStatus{}
}
