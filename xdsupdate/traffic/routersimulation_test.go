// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"testing"

	"github.com/pilotkit/pilotkit/internal/test/routecheck"
	"github.com/pilotkit/pilotkit/internal/test/routesim"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/route"
)

// router returns the router of a simulated proxy.
func (s *scene) router(kind route.Kind, p routesim.Proxy) *route.Router {
	return s.policies.Router(kind, &registry.Proxy{Namespace: p.Namespace, Labels: p.Labels})
}

// checkRouter fails the test if a router does something else with a request.
func checkRouter(t *testing.T, router *route.Router, r routesim.Request, want routesim.Outcome, about func() string) {
	t.Helper()
	if problem := routecheck.Differs(router.Route, routecheck.Request(r), want); problem != "" {
		t.Fatalf("router, request %+v:\n got %s\nwant %s\n%s", r, problem, want, about())
	}
}
