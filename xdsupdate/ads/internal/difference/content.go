// SPDX-License-Identifier: Apache-2.0

package difference

import (
	"math"
	"slices"
	"sync"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/reference"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/resource"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/wire"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// Content is the content of one response.
type Content struct {
	TypeURL string
	delta   bool
	// Listed are the resources in the response, by name, unless Full is set: then the response has
	// all resources of After, because the client takes the others for removed.
	Listed []*resource.State
	Full   bool
	// Removed are the names in a delta response.
	Removed []string
	// Fresh are the clusters of Listed that the client does not have.
	Fresh reference.ClusterNames
	// After is the client's snapshot after the response.
	After *resource.Snapshot
	// Parts divide the content into several responses; nil if there is one response.
	Parts []Part

	once    sync.Once
	encoded []byte // the resources, encoded as a field of the response
}

// Part is a part of a content. Sum is the sum of the client's snapshot after this part and those
// before it.
type Part struct {
	*Content
	Sum uint64
}

// Encode returns the field "resources" of a response, in the encoding of the protocol: Any, or
// Resource. It is encoded once, by the first stream that sends it.
func (c *Content) Encode() []byte {
	c.once.Do(func() {
		list, size := c.Listed, 0
		if c.Full {
			list = slices.AppendSeq(make([]*resource.State, 0, c.Count()), c.After.List.All())
			list = slices.DeleteFunc(list, func(r *resource.State) bool { return !r.IsPresent() })
		}
		for _, r := range list {
			size += wire.ResourceSize(r)
		}
		c.encoded = make([]byte, 0, size)
		for _, r := range list {
			c.encoded = wire.AppendResource(c.encoded, r, c.delta)
		}
	})
	return c.encoded
}

// Count returns the number of resources in the response.
func (c *Content) Count() int {
	if c.Full {
		return c.After.List.Len()
	}
	return len(c.Listed)
}

// Message returns the response. Its resources are shared by many responses: in the message they are unknown fields
// of protobuf, which are sent unchanged.
func (c *Content) Message(version, nonce string) (m proto.Message) {
	if c.delta {
		m = &discovery.DeltaDiscoveryResponse{SystemVersionInfo: version, TypeUrl: c.TypeURL, Nonce: nonce, RemovedResources: c.Removed}
	} else {
		m = &discovery.DiscoveryResponse{VersionInfo: version, TypeUrl: c.TypeURL, Nonce: nonce}
	}
	m.ProtoReflect().SetUnknown(c.Encode())
	return m
}

// MostParts is the number of responses that are sent before the client has answered all of them,
// each with one resource.
const MostParts = 16

// comesAlone reports whether resources of a type come in responses of their own if they are few.
// gRPC clients apply the valid resources of any response.
func comesAlone(typeURL string, d Traits) bool {
	switch typeURL {
	case envoy.RouteType, SecretType:
		return !d.GRPC
	case envoy.LoadAssignmentType:
		return !d.GRPC && !d.Delta
	default:
		return false
	}
}

// AtOnce returns the number of resources that are sent before the client has answered. It is not
// bounded for load assignments, because there may be thousands of them, and they are hardly ever
// rejected.
func (k Kind) AtOnce(d Traits) int {
	if k.TypeURL != envoy.LoadAssignmentType && comesAlone(k.TypeURL, d) {
		return MostParts
	}
	return math.MaxInt
}

// Divide puts each resource of a response into a response of its own, if they are few. from is the
// client's snapshot before.
func (c *Content) Divide(from *resource.Snapshot, d Traits) {
	if c.Full || len(c.Listed) < 2 || len(c.Listed) > MostParts+1 || !comesAlone(c.TypeURL, d) {
		return
	}
	sum := from.Sum
	for _, r := range c.Listed {
		if old := from.Find(r.Name); old != nil {
			sum -= old.Weight()
		}
		sum += r.Weight()
		c.Parts = append(c.Parts, Part{&Content{TypeURL: c.TypeURL, delta: c.delta, Listed: []*resource.State{r}}, sum})
	}
}
