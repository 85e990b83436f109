// SPDX-License-Identifier: Apache-2.0

package xdsbuild

import (
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcher "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"

	"github.com/pilotkit/pilotkit/internal/envoycheck/re2"
)

// ProgramSize returns an upper bound of the number of instructions in the programs of a route's
// regular expressions. An Envoy compiles the programs, 32 bytes for each instruction, whenever a
// route configuration changes.
func ProgramSize(r *routev3.Route) int {
	n := expressionSize(r.GetMatch().GetSafeRegex()) + expressionSize(r.GetRoute().GetRegexRewrite().GetPattern())
	for _, h := range r.GetMatch().GetHeaders() {
		n += expressionSize(h.GetStringMatch().GetSafeRegex())
		n += expressionSize(h.GetSafeRegexMatch()) //nolint:staticcheck // gRPC C-core knows the old fields only
	}
	for _, q := range r.GetMatch().GetQueryParameters() {
		n += expressionSize(q.GetStringMatch().GetSafeRegex())
	}
	return n
}

func expressionSize(m *matcher.RegexMatcher) int {
	if m == nil {
		return 0
	}
	size, _ := re2.Size(m.GetRegex())
	return size
}
