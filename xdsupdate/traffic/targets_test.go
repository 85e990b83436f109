// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"testing"

	"github.com/pilotkit/pilotkit/registry"
)

// TestFirstTargetCounts: of several endpoints that a service has at a router's address,
// the first says on which port the router listens.
func TestFirstTargetCounts(t *testing.T) {
	const address = "10.9.9.1"
	svc, found := testService("ingress", "edge.example.com", 80), make(map[string]targetPorts)
	for _, port := range []uint32{8080, 9090} {
		addTargets(found, address, svc, &registry.Endpoint{
			Addresses: []string{address}, EndpointPort: port, ServicePort: 80, ServicePortName: svc.Ports[0].Name,
		})
	}
	if got := found[address][80]; got != 8080 {
		t.Errorf("the router listens on %d, want 8080", got)
	}
}
