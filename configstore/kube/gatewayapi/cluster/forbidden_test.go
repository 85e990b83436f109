// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/kube/gatewayapi"
	"github.com/pilotkit/pilotkit/configstore/kube/gatewayapi/cluster"
)

// TestForbidden: forbidden kinds, of the Gateway API or others, affect only the configs that depend
// on them, are reported by Errors, and work as soon as they may be read.
func TestForbidden(t *testing.T) {
	s := newSite(t)
	user := "limited-" + s.namespace
	allow := func(rules string) {
		s.apply(fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: %[1]s}
rules:
- {apiGroups: [""], resources: [namespaces, services, configmaps], verbs: [list, watch]}
- {apiGroups: [apiextensions.k8s.io], resources: [customresourcedefinitions], verbs: [list, watch]}
- {apiGroups: [gateway.networking.k8s.io], resources: [gatewayclasses, gateways, listenersets, httproutes, tlsroutes, tcproutes, referencegrants, backendtlspolicies], verbs: [list, watch]}
%[2]s
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %[1]s}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: %[1]s}]
`, user, rules))
	}
	allow("")
	defer s.remove(fmt.Sprintf("{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: %[1]s}}\n---\n{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: %[1]s}}", user))
	grpc := strings.NewReplacer("kind: HTTPRoute", "kind: GRPCRoute", "name: cart}", "name: calls}", "cart.example.com", "calls.example.com").Replace(cart)
	s.apply(class + "---" + edge + "---" + cart + "---" + grpc + "---" + cartService)
	infrastructure := &host{answer: ready("10.0.0.1")}
	p := s.follow(restConfig(s.server.ConfigFor(user)), cluster.Options{
		CacheOptions: gatewayapi.CacheOptions{Infrastructure: infrastructure}, Optional: []string{"secrets", "grpcroutes"},
	})
	s.synced(p)
	hosts := func() string {
		var names []string
		for _, c := range p.cache.List(istio.VirtualService, s.namespace) {
			names = append(names, c.Annotations["internal.istio.io/parents"])
		}
		return strings.Join(names, ",")
	}
	eventually(t, "the other kinds take effect", func() bool { return hosts() == "HTTPRoute/cart."+s.namespace })
	named := func(kind string) bool {
		for _, err := range p.cache.Errors() {
			if strings.Contains(strings.ToLower(err.Error()), kind) && strings.Contains(err.Error(), "forbidden") {
				return true
			}
		}
		return false
	}
	eventually(t, "Errors names the kinds", func() bool { return named("grpcroute") && named("secret") })
	var core cluster.SourceError
	if !errors.As(errors.Join(p.cache.Errors()...), &core) || core.Kind != "secrets" {
		t.Errorf("no SourceError of secrets: %v", p.cache.Errors())
	}
	// Other changes are still processed.
	s.remove(cart)
	eventually(t, "the route has gone", func() bool { return hosts() == "" })
	s.apply(cart)

	allow(`- {apiGroups: ["", gateway.networking.k8s.io], resources: [secrets, grpcroutes], verbs: [list, watch]}`)
	eventually(t, "what may be read now takes effect", func() bool {
		return len(p.cache.List(istio.VirtualService, configstore.NamespaceAll)) > 0 && strings.Contains(hosts(), "GRPCRoute/calls.") &&
			strings.Contains(hosts(), "HTTPRoute/cart.") && !named("grpcroute") && !named("secret")
	})
}
