// SPDX-License-Identifier: Apache-2.0

package istio

import networking "istio.io/api/networking/v1alpha3"

// checkHTTPMatch checks the conditions of an HTTP route.
func checkHTTPMatch(at *field, match *networking.HTTPMatchRequest) {
	checkStringMatch(at.child("uri"), match.Uri)
	checkStringMatch(at.child("scheme"), match.Scheme)
	checkStringMatch(at.child("method"), match.Method)
	checkStringMatch(at.child("authority"), match.Authority)
	checkHeaderMatches(at, "headers", match.Headers)
	checkHeaderMatches(at, "withoutHeaders", match.WithoutHeaders)
	start := at.out.mark()
	for parameter, value := range match.QueryParams {
		if parameter == "" {
			at.entry("queryParams", parameter).refuse("key must not be empty")
		}
		checkValueMatch(at.entry("queryParams", parameter), value)
	}
	at.out.sortSince(start)
	checkSource(at, match)
}

// source is what matches of every protocol say about where traffic comes from.
type source interface {
	GetPort() uint32
	GetSourceLabels() map[string]string
	GetGateways() []string
	GetSourceNamespace() string
}

func checkSource(at *field, match source) {
	checkPortNumberIfSet(at.child("port"), match.GetPort())
	checkLabels(at, "sourceLabels", match.GetSourceLabels())
	checkGatewayNames(at, match.GetGateways())
	if namespace := match.GetSourceNamespace(); namespace != "" {
		checkDNSLabel(at.child("sourceNamespace"), namespace)
	}
}
