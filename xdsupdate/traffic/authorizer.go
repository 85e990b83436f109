// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"errors"
	"fmt"
	"strings"

	meshconfig "istio.io/api/mesh/v1alpha1"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/hostname"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/rbac"
)

// authorizer returns the named provider of CUSTOM policies for a router. Its Err is set if the mesh
// configuration has no such provider or the router has no cluster for it.
func (st *state) authorizer(p *proxy, name string) rbac.Provider {
	out := rbac.Provider{Name: name}
	configured := st.settings.authorizer(name)
	if configured == nil {
		out.Err = errors.New("the mesh configuration has no such extension provider for authorization")
		return out
	}
	out.GRPC, out.HTTP = configured.GetEnvoyExtAuthzGrpc(), configured.GetEnvoyExtAuthzHttp()
	namespace, host, port := authorizerService(configured)
	out.Host = string(host)
	out.Cluster = envoy.ClusterName(port, host)
	if st.serviceFor(p, host, namespace) == nil || !st.coversCluster(p, out.Cluster) {
		out.Err = fmt.Errorf("there is no cluster %s", out.Cluster)
	}
	return out
}

// authorizer returns the named extension provider for authorization, or nil.
func (s *settings) authorizer(name string) *meshconfig.MeshConfig_ExtensionProvider {
	for _, e := range s.Mesh.GetExtensionProviders() {
		if e.GetName() == name && (e.GetEnvoyExtAuthzGrpc() != nil || e.GetEnvoyExtAuthzHttp() != nil) {
			return e
		}
	}
	return nil
}

// authorizerService returns the service of a provider. The provider names it "HOST" or
// "NAMESPACE/HOST".
func authorizerService(e *meshconfig.MeshConfig_ExtensionProvider) (namespace string, host registry.Hostname, port uint32) {
	service, port := e.GetEnvoyExtAuthzGrpc().GetService(), e.GetEnvoyExtAuthzGrpc().GetPort()
	if h := e.GetEnvoyExtAuthzHttp(); h != nil {
		service, port = h.GetService(), h.GetPort()
	}
	if ns, name, ok := strings.Cut(service, "/"); ok {
		return ns, hostname.Canonical(name), port
	}
	return "", hostname.Canonical(service), port
}

// isAuthorizer reports whether some extension provider for authorization uses the service.
func (s *settings) isAuthorizer(name registry.Hostname) bool {
	for _, e := range s.Mesh.GetExtensionProviders() {
		if _, host, _ := authorizerService(e); host != "" && host == name {
			return true
		}
	}
	return false
}
