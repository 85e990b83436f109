// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"testing"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	xdscache "github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/stream/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilotkit/pilotkit/registry"
)

// TestDroppedResponse: go-control-plane's ordered SotW server drops a response
// when a request of the same type comes before it was sent.
func TestDroppedResponse(t *testing.T) {
	const typeURL = "type.googleapis.com/google.protobuf.StringValue"
	c := newCache(false)
	conn := &connection{
		cache: c, poke: func() {}, report: func(err error) { t.Error(err) },
		identify:      func(*core.Node) (*registry.Proxy, error) { return &registry.Proxy{}, nil },
		subscriptions: make(map[string]*subscription),
	}
	c.publish(change{}, conn.report)
	to := make(chan xdscache.Response, 1)
	names := []string{"a", "b"}
	sub := stream.NewSotwSubscription(names, false)
	watch := func(names ...string) func() {
		t.Helper()
		sub.SetResourceSubscription(names)
		cancel, err := conn.CreateWatch(&discovery.DiscoveryRequest{TypeUrl: typeURL, ResourceNames: names}, sub, to)
		if err != nil {
			t.Fatal(err)
		}
		return cancel
	}
	cancel := watch("a")
	v := conn.view
	made := overlay(typeURL, []Resource{{Name: "a", Message: wrapperspb.String("a")}, {Name: "b", Message: wrapperspb.String("b")}})
	c.publish(change{overlays: map[*view]map[string]map[string]*resource{v: {typeURL: made}}}, conn.report)
	cancel()
	<-to // dropped: it was not asked for its content
	watch(names...)
	got, err := (<-to).GetDiscoveryResponse()
	if err != nil {
		t.Fatal(err)
	}
	if len(got.GetResources()) != 2 {
		t.Errorf("%d resources after a dropped response, want 2", len(got.GetResources()))
	}
	conn.close()
	if len(c.subscribers)+len(c.views)+len(c.conns) != 0 {
		t.Errorf("left after the end: %d subscriptions, %d views, %d connections", len(c.subscribers), len(c.views), len(c.conns))
	}
}
