// SPDX-License-Identifier: Apache-2.0

package istio_test

import (
	"testing"

	"github.com/pilotkit/pilotkit/configstore/istio"
)

func TestL4Routes(t *testing.T) {
	testRules(t, istio.VirtualService, virtualServiceBase, []ruleTest{
		{
			name: "TLS",
			spec: `tls: [{}, {match: [{}, {sniHosts: [example.com, "*.example.com", "*", "reviews.prod.svc.cluster.local", a_b], destinationSubnets: [a], port: 65536, gateways: [a_b]}], route: [{}]}]`,
			violations: []string{
				"spec.tls[0].match: must have at least one match",
				"spec.tls[0].route: must have at least one destination",
				"spec.tls[1].match[0].sniHosts: must have at least one host",
				`spec.tls[1].match[1].sniHosts[0]: must be one of spec.hosts or included by one, is "example.com"`,
				`spec.tls[1].match[1].sniHosts[2]: must be one of spec.hosts or included by one, is "*"`,
				`spec.tls[1].match[1].sniHosts[4]: must be a domain name, is "a_b": "a_b" is not a DNS label (letters, digits and inner dashes, at most 63 characters)`,
				`spec.tls[1].match[1].sniHosts[4]: must be one of spec.hosts or included by one, is "a_b"`,
				`spec.tls[1].match[1].destinationSubnets[0]: must be an IP address or a CIDR block, is "a"`,
				"spec.tls[1].match[1].port: must be 0 (unset) or 1–65535, is 65536",
				`spec.tls[1].match[1].gateways[0]: must be a gateway's name or namespace/name, is "a_b"`,
				"spec.tls[1].route[0].destination: is required",
			},
			warnings: []string{
				"spec.tls[1]: is never reached: spec.tls[0] takes everything",
			},
		},
		{
			name: "TCP",
			spec: `tcp: [{}, {match: [{destinationSubnets: [""], sourceSubnet: x, sourceLabels: {a b: c}}], route: [{destination: {host: a}}, {destination: {host: b}}]}]`,
			violations: []string{
				"spec.tcp[0].route: must have at least one destination",
				`spec.tcp[1].match[0].destinationSubnets[0]: must be an IP address or a CIDR block, is ""`,
				`spec.tcp[1].match[0].sourceSubnet: must be an IP address or a CIDR block, is "x"`,
				"spec.tcp[1].match[0].sourceLabels[a b]: key must end in a name (letters, digits, and inside also '-', '_' and '.', at most 63 characters)",
				"spec.tcp[1].route: must have a destination with a weight above 0",
			},
			warnings: []string{
				"spec.tcp[1]: is never reached: spec.tcp[0] takes everything",
			},
		},
	})
}
