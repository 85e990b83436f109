// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"math"

	networking "istio.io/api/networking/v1alpha3"
)

// checkDestination checks where traffic goes to.
func checkDestination(at *field, destination *networking.Destination) {
	switch {
	case destination == nil:
		at.refuse("is required")
		return
	case destination.Host == "*":
		at.child("host").refuse("must not be *")
	default:
		checkWildcardDomain(at.child("host"), destination.Host)
	}
	if destination.Subset != "" {
		checkDNSLabel(at.child("subset"), destination.Subset)
	}
	if destination.Port != nil {
		checkPortNumber(at.child("port").child("number"), destination.Port.Number)
	}
}

// weighted is a destination with its share, of HTTP and of other routes.
type weighted interface {
	comparable
	GetDestination() *networking.Destination
	GetWeight() int32
}

// checkDestinations checks the destinations of a route and their weights. A single destination gets
// all traffic, regardless of its weight. Generated routes have placeholders for missing
// destinations.
func checkDestinations[W weighted](at *field, destinations []W, scope routeScope) {
	var total int64
	for place, d := range elements(at, "route", destinations) {
		if !scope.generated || d.GetDestination() == nil {
			checkDestination(place.child("destination"), d.GetDestination())
		}
		checkNotNegative(place.child("weight"), d.GetWeight())
		total += int64(d.GetWeight())
	}
	switch {
	case len(destinations) > 1 && total == 0:
		at.child("route").refuse("must have a destination with a weight above 0")
	case total > math.MaxUint32:
		at.child("route").refuse("must have weights that add up to at most %d, add up to %d", uint32(math.MaxUint32), total)
	}
}
