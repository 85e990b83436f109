// SPDX-License-Identifier: Apache-2.0

package difference

import (
	"math"

	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/resource"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// MostParts is how many responses are sent before the client has answered them all, each
// with one resource.
const MostParts = 16

// comesAlone reports whether resources of a type come in responses of their own, at
// least if they are few. gRPC clients take what is good of any response.
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

// AtOnce returns how many resources are sent before the client has answered. Load
// assignments are what there may be thousands of, and are hardly ever refused.
func (k Kind) AtOnce(d Traits) int {
	if k.TypeURL != envoy.LoadAssignmentType && comesAlone(k.TypeURL, d) {
		return MostParts
	}
	return math.MaxInt
}

// Divide makes responses of their own of the resources of a response, if they are few.
// The client had from before.
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
