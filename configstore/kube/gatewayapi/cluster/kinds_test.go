// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"bytes"
	"testing"

	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/kube"
	"github.com/pilotkit/pilotkit/configstore/kube/gatewayapi/cluster"
	"github.com/pilotkit/pilotkit/internal/test/kubetest"
)

// TestLateKinds: a server without the kinds has synced at once. Kinds that are created later, in an
// older version only, are watched from then on, and lose their objects with their CRD.
func TestLateKinds(t *testing.T) {
	kubetest.Require(t)
	s := siteOf(t, kubetest.Start(t))
	p := s.start(restConfig(s.server.Config()), cluster.Options{}, kube.StatusOptions{})
	s.synced(p)
	if errs := p.cache.Errors(); len(errs) > 0 {
		t.Errorf("%v", errs)
	}
	s.server.ApplyCRDs(t, kubetest.GatewayAPICRDs(t, "standard", "gateways", "gatewayclasses"))
	s.apply(class + "---" + edge)
	eventually(t, "the listener is there", func() bool { return len(p.cache.List(istio.Gateway, s.namespace)) == 1 })
	routes := kubetest.GatewayAPICRDs(t, "standard", "httproutes")
	old := bytes.Replace(routes, []byte("    served: true\n    storage: true\n"), []byte("    served: false\n    storage: true\n"), 1)
	if bytes.Equal(old, routes) {
		t.Fatal("the CRD has no stored version")
	}
	s.server.ApplyCRDs(t, old)
	s.apply(string(bytes.Replace([]byte(cart), []byte("k8s.io/v1\n"), []byte("k8s.io/v1beta1\n"), 1)))
	eventually(t, "the route of the older version is there", func() bool { return len(p.cache.List(istio.VirtualService, s.namespace)) == 1 })
	s.server.DeleteCRD(t, "httproutes.gateway.networking.k8s.io")
	eventually(t, "the route has gone", func() bool { return len(p.cache.List(istio.VirtualService, s.namespace)) == 0 })
	if len(p.cache.List(istio.Gateway, s.namespace)) != 1 {
		t.Error("the listener has gone with the routes")
	}
}
