// SPDX-License-Identifier: Apache-2.0

package istio_test

import (
	"testing"

	"github.com/pilotkit/pilotkit/configstore/istio"
)

func TestReachability(t *testing.T) {
	const to = `route: [{destination: {host: b}}]`
	testRules(t, istio.VirtualService, oneRouteBase, []ruleTest{
		{
			name: "after a route for everything",
			spec: `http: [{` + to + `}, {match: [{uri: {exact: /a}}], ` + to + `}]`,
			warnings: []string{
				"spec.http[1]: is never reached: spec.http[0] takes everything",
			},
		},
		{
			name: "after the prefix of everything",
			spec: `http: [{match: [{uri: {exact: /a}}, {uri: {prefix: /}}], ` + to + `}, {` + to + `}]`,
			warnings: []string{
				"spec.http[1]: is never reached: spec.http[0] takes everything",
			},
		},
		{
			name: "after an empty match",
			spec: `http: [{match: [{name: all}], ` + to + `}, {` + to + `}]`,
			warnings: []string{
				"spec.http[1]: is never reached: spec.http[0] takes everything",
			},
		},
		{
			name: "repeated",
			spec: `http: [{match: [{name: x, uri: {exact: /a}, headers: {a: {exact: "1"}, b: {}}}], ` + to + `}, {match: [{uri: {exact: /b}}, {headers: {b: {}, a: {exact: "1"}}, uri: {exact: /a}}], ` + to + `}]`,
			warnings: []string{
				"spec.http[1].match[1]: is never reached: it repeats spec.http[0].match[0]",
			},
		},
		{
			name: "after a prefix",
			spec: `http: [{match: [{uri: {prefix: /a}}], ` + to + `}, {match: [{uri: {prefix: /a/b}, port: 80}, {uri: {exact: /abc}}, {uri: {exact: /b}}], ` + to + `}]`,
			warnings: []string{
				`spec.http[1].match[0]: is never reached: spec.http[0].match[0] takes every path with the prefix "/a"`,
				`spec.http[1].match[1]: is never reached: spec.http[0].match[0] takes every path with the prefix "/a"`,
			},
		},
		{name: "after a prefix with more conditions", spec: `http: [{match: [{uri: {prefix: /a}, port: 80}], ` + to + `}, {match: [{uri: {exact: /a}}], ` + to + `}]`},
		{name: "after a prefix in any letter case", spec: `http: [{match: [{uri: {prefix: /a}, ignoreUriCase: true}], ` + to + `}, {match: [{uri: {exact: /ab}}], ` + to + `}]`},
		{name: "after a delegate", spec: `http: [{match: [{uri: {prefix: /}}], delegate: {name: d}}, {` + to + `}]`},
	})
}
