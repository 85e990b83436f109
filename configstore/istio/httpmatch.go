// SPDX-License-Identifier: Apache-2.0

package istio

import networking "istio.io/api/networking/v1alpha3"

// maxQueryParameterLength is Envoy's limit for the names of query parameters.
const maxQueryParameterLength = 1024

// checkHTTPMatch checks the conditions of an HTTP route.
func checkHTTPMatch(at *field, match *networking.HTTPMatchRequest, scope routeScope) {
	checkPathMatch(at.child("uri"), match.Uri)
	checkAttributeMatch(at.child("scheme"), match.Scheme)
	checkAttributeMatch(at.child("method"), match.Method)
	checkAttributeMatch(at.child("authority"), match.Authority)
	checkHeaderMatches(at, "headers", match.Headers, scope)
	checkHeaderMatches(at, "withoutHeaders", match.WithoutHeaders, scope)
	for place, value := range entries(at, "queryParams", match.QueryParams) {
		if place.key == "" {
			place.refuse("key must not be empty")
		}
		if len(place.key) > maxQueryParameterLength {
			place.refuse("key must have at most %d bytes, has %d", maxQueryParameterLength, len(place.key))
		}
		checkValueMatch(place, value)
	}
	checkSource(at, match)
}

// trafficSource is what matches of every protocol say about where traffic comes from.
type trafficSource interface {
	GetPort() uint32
	GetSourceLabels() map[string]string
	GetGateways() []string
	GetSourceNamespace() string
}

func checkSource(at *field, match trafficSource) {
	checkPortNumberIfSet(at.child("port"), match.GetPort())
	checkLabels(at, "sourceLabels", match.GetSourceLabels())
	checkGatewayNames(at, match.GetGateways(), false)
	if namespace := match.GetSourceNamespace(); namespace != "" {
		checkDNSLabel(at.child("sourceNamespace"), namespace)
	}
}
