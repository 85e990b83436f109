// SPDX-License-Identifier: Apache-2.0

package difference

import (
	"math"

	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/resource"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

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
