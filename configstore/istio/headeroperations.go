// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/internal/envoycheck/headerformat"
)

// checkHeaders checks the operations on request and response headers; nil is valid.
func checkHeaders(at *field, headers *networking.Headers) {
	checkHeaderOperations(at.child("request"), headers.GetRequest(), true)
	checkHeaderOperations(at.child("response"), headers.GetResponse(), false)
}

// checkHeaderOperations checks the operations on one kind of message. A request
// may be given another authority.
func checkHeaderOperations(at *field, operations *networking.Headers_HeaderOperations, request bool) {
	checkHeaderValues(at, "set", operations.GetSet(), request)
	checkHeaderValues(at, "add", operations.GetAdd(), request)
	for i, name := range operations.GetRemove() {
		if problem := operationNameProblem(name, false); problem != "" {
			at.elem("remove", i).refuse("%s, is %q", problem, name)
		}
	}
}

func checkHeaderValues(at *field, name string, values map[string]string, authority bool) {
	for place, value := range entries(at, name, values) {
		if problem := operationNameProblem(place.key, authority); problem != "" {
			place.refuse("key %s", problem)
		}
		if problem := headerValueProblem(value); problem != "" {
			place.refuse("%s, is %q", problem, value)
		}
	}
}

// operationNameProblem is headerNameProblem for headers that are changed. The
// authority, which HTTP/1 calls Host, is like no other header: Envoy routes by it.
func operationNameProblem(name string, authority bool) string {
	switch {
	case !isAuthority(name):
		return headerNameProblem(name)
	case !authority:
		return "must not be the authority, which only request.set and request.add may change"
	default:
		return ""
	}
}

func isAuthority(header string) bool {
	return strings.EqualFold(header, ":authority") || strings.EqualFold(header, "host")
}

// checkAuthorityOnce checks that a route gives requests at most one other
// authority.
func checkAuthorityOnce(at *field, route *networking.HTTPRoute) {
	changes := 0
	if route.GetRewrite().GetAuthority() != "" {
		changes++
	}
	operations := route.GetHeaders().GetRequest()
	for _, values := range []map[string]string{operations.GetSet(), operations.GetAdd()} {
		for header, value := range values {
			if isAuthority(header) && value != "" {
				changes++
			}
		}
	}
	if changes > 1 {
		at.refuse("must change the authority once only, in rewrite.authority, headers.request.set or headers.request.add")
	}
}

// headerValueProblem describes why Envoy cannot set a header to a value, or returns "". Envoy
// rejects a whole route configuration over one invalid value. textRule rejects control characters.
func headerValueProblem(value string) string {
	if len(value) > maxHeaderLength {
		return "must have at most 16384 bytes"
	}
	if err := headerformat.Check(value); err != nil {
		return "must be a format of Envoy: " + err.Error()
	}
	return ""
}
