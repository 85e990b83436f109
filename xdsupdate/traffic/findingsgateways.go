// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	meshconfig "istio.io/api/mesh/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/hostname"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/mesh"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
)

// routerFor returns a router with exactly the labels that a Gateway selects. Gateways for the same
// routers share one, so that its resources are computed once.
func (f *findings) routerFor(g *objects.Gateway) *proxy {
	p := g.Router()
	return f.proxies.Get(p.Namespace+"/"+objects.JoinLabels(p.Labels), func() *proxy { return &proxy{Proxy: *p} })
}

// listenersFor returns the listeners of a Gateway's router, sorted by name.
func (f *findings) listenersFor(g *objects.Gateway) []*gatewayListener {
	byName := f.routerOf(f.routerFor(g)).listeners
	out := make([]*gatewayListener, 0, len(byName))
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		out = append(out, byName[name])
	}
	return out
}

func (f *findings) gateway(g *objects.Gateway) func() []Effect {
	clients := "all routers"
	if g.Owner != (objects.ObjectName{}) {
		clients = fmt.Sprintf("routers of namespace %s of the Kubernetes Gateway %s", g.Owner.Namespace, g.Owner.Name)
	} else if labels := registry.Labels(g.Spec.GetSelector()); len(labels) > 0 {
		clients = "routers with the labels " + labels.String()
	}
	var effects []Effect
	served := make(map[*networking.Server]*gatewayServer)
	for _, l := range f.listenersFor(g) {
		for _, s := range l.servers {
			if served[s.spec] = s; s.gateway == g {
				effects = append(effects, Effect{clients, fmt.Sprintf("%s on port %d for %s",
					s.spec.GetPort().GetProtocol(), s.port(), strings.Join(s.spec.GetHosts(), ", "))})
			}
		}
	}
	for i, spec := range g.Spec.GetServers() {
		field := objects.Element("spec.servers", i)
		f.credentials(field+".tls.credentialName", spec.GetTls().GetCredentialName())
		f.credentials(field+".tls.credentialNames", spec.GetTls().GetCredentialNames()...)
		if kind, _ := kindOf(spec); kind == passthrough || kind == autoPassthrough {
			f.unusedTLS(field+".tls", spec.GetTls())
		}
		if s := served[spec]; s == nil {
			f.add(field, "a server before it, or of an older Gateway, has port %d, or one of the hosts on it", spec.GetPort().GetNumber())
		} else if reason := f.whyNotRouted(s); reason != "" {
			f.add(field, "%s", reason)
		}
	}
	return func() []Effect { return effects }
}

// whyNotRouted returns the reason why a server has no traffic to serve. It is empty if it has some.
func (f *findings) whyNotRouted(s *gatewayServer) string {
	if s.kind == autoPassthrough || s.redirects() {
		return ""
	}
	reason := "no VirtualService is for its hosts"
	for _, v := range f.Finder.BoundTo(s.gateway.String()) {
		switch {
		case !s.sharesHost(v):
		case s.takes(v):
			return ""
		default:
			reason = "no VirtualService for its hosts has routes of its kind"
		}
	}
	return reason
}

// unusedTLS adds findings for TLS settings that a server ignores because it does not terminate TLS.
func (f *findings) unusedTLS(field string, tls *networking.ServerTLSSettings) {
	for _, setting := range []struct {
		name string
		set  bool
	}{
		{"httpsRedirect", tls.GetHttpsRedirect()},
		{"credentialName", tls.GetCredentialName() != ""},
		{"credentialNames", len(tls.GetCredentialNames()) > 0},
		{"serverCertificate", tls.GetServerCertificate() != ""},
		{"caCertificates", tls.GetCaCertificates() != ""},
		{"subjectAltNames", len(tls.GetSubjectAltNames()) > 0},
		{"cipherSuites", len(tls.GetCipherSuites()) > 0},
	} {
		if setting.set {
			f.addOnce(field+"."+setting.name, fmt.Errorf("a server of mode %s passes TLS on, and takes no part in it", tls.GetMode()))
		}
	}
}

// credentials adds findings for credential names with an unknown scheme, such as "sds://provider". Such
// secrets belong to an SDS provider next to the proxy.
func (f *findings) credentials(field string, names ...string) {
	for _, name := range names {
		if name == "" || xdsbuild.FromGatewayAPI(name) {
			continue
		}
		if _, known := envoy.ParseSecretName(envoy.CredentialName(name)); !known {
			f.add(field, "providers of secrets beside proxies are not used: %q is asked for as a secret of this server, which only a provider of the program can serve", name)
		}
	}
}

func (f *findings) sidecar(s *objects.Sidecar) func() []Effect {
	for _, b := range f.Sidecars.In(s.Namespace) {
		if b == s {
			break
		}
		if b.Selector.SubsetOf(s.Selector) {
			f.add("", "Sidecar %s is for the same workloads and comes first", b)
			return nil
		}
	}
	if mode := s.Spec.GetOutboundTrafficPolicy().GetMode(); networking.OutboundTrafficPolicy_Mode_name[int32(mode)] == "" {
		f.add("spec.outboundTrafficPolicy.mode", "%d is not known: requests to unknown hosts are blocked, as by REGISTRY_ONLY", mode)
	}
	f.tooManyImports(s)
	if len(s.Spec.GetIngress()) > 0 {
		f.add("spec.ingress", "the inbound side of proxies is not configured")
	}
	everywhere := s.Namespace == f.settings.RootNamespace() && !s.Selective()
	if !everywhere { // Otherwise, hosts of namespace "." refer to the namespace of each proxy.
		f.unknownHosts(s)
	}
	return func() []Effect {
		clients := "sidecars and gRPC clients of namespace " + s.Namespace
		if everywhere {
			clients = "sidecars and gRPC clients of all namespaces without a Sidecar of their own"
		} else if len(s.Selector) > 0 {
			clients += " with the labels " + s.Selector.String()
		}
		seen := len(mesh.NewScope(f.Index, f.world, s, s.Namespace, f.settings.limits.Imports).Sorted)
		return []Effect{{clients, fmt.Sprintf("%d services are seen", seen)}}
	}
}

// unknownHosts adds findings for imported hosts of a Sidecar without a service and a VirtualService.
func (f *findings) unknownHosts(s *objects.Sidecar) {
	for i, l := range s.Spec.GetEgress() {
		for j, host := range l.GetHosts() {
			parsed := mesh.NewEgressHosts([]string{host}, s.Namespace)
			if !parsed.Empty() && !f.imports(parsed, host) {
				f.add(objects.Element(objects.Element("spec.egress", i)+".hosts", j), "no service and no VirtualService is %q", host)
			}
		}
	}
}

func (f *findings) tooManyImports(s *objects.Sidecar) {
	if len(s.Listeners()) < 2 {
		return
	}
	scope := mesh.NewScope(f.Index, f.world, s, s.Namespace, f.settings.limits.Imports)
	for _, e := range scope.Egress {
		f.addErrors(newLeftOutErrors(f.leftOutOf(scope, e)))
	}
}

func (f *findings) imports(hosts mesh.EgressHosts, written string) bool {
	_, host, _ := strings.Cut(written, "/")
	return f.some(hostname.Canonical(host), hosts.Service) || slices.ContainsFunc(f.VirtualServices, hosts.VirtualService)
}

// meshKind identifies the mesh configuration in findings. No store has this kind.
func meshKind() configstore.GroupVersionKind {
	return configstore.GroupVersionKind{Group: "mesh.istio.io", Version: "v1alpha1", Kind: "MeshConfig"}
}

// effectiveMeshFields returns the fields of the mesh configuration that have an effect, in this
// package or through MeshOf of serviceentry and ingress. A field stands for all its subfields.
func effectiveMeshFields() []string {
	return []string{
		"connectTimeout", "tcpKeepalive", "outboundTrafficPolicy", "enableAutoMtls", "trustDomain", "trustDomainAliases",
		"defaultServiceExportTo", "defaultVirtualServiceExportTo", "defaultDestinationRuleExportTo", "rootNamespace",
		"localityLbSetting", "dnsRefreshRate", "h2UpgradePolicy", "extensionProviders", "pathNormalization",
		"defaultHttpRetryPolicy", "tlsDefaults.minProtocolVersion", "tlsDefaults.cipherSuites", "tlsDefaults.ecdhCurves",
		"defaultTrafficPolicy.connectionPool", "defaultTrafficPolicy.outlierDetection",
		"defaultConfig.gatewayTopology", "defaultConfig.proxyHeaders.attemptCount", "defaultConfig.proxyHeaders.server",
		"defaultConfig.proxyHeaders.requestId", "defaultConfig.proxyHeaders.envoyDebugHeaders", "defaultConfig.proxyHeaders.xForwardedPort",
		"serviceEntryVisibility",
		"ingressClass", "ingressService", "ingressControllerMode", "ingressSelector",
	}
}

func (f *findings) meshConfig() {
	f.kind, f.name = meshKind(), objects.ObjectName{Namespace: f.settings.RootNamespace(), Name: "mesh"}
	f.outboundMode()
	f.extensionProviders()
	if f.settings.options.Mesh != nil {
		f.unusedMeshFields(f.settings.options.Mesh.ProtoReflect(), "")
	}
}

// unusedMeshFields adds findings for set fields without effect. The prefix is the path of the
// message.
func (f *findings) unusedMeshFields(m protoreflect.Message, prefix string) {
	used := effectiveMeshFields()
	set := make(map[string]protoreflect.Value)
	m.Range(func(field protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		set[prefix+field.JSONName()] = v
		return true
	})
	for _, path := range slices.Sorted(maps.Keys(set)) {
		partly := func(u string) bool { return strings.HasPrefix(u, path+".") }
		switch {
		case slices.Contains(used, path):
		case slices.ContainsFunc(used, partly):
			f.unusedMeshFields(set[path].Message(), path+".")
		default:
			f.add(path, "nothing acts on this field")
		}
	}
}

// extensionProviders adds findings for providers that are never asked.
func (f *findings) extensionProviders() {
	for i, e := range f.settings.Mesh.GetExtensionProviders() {
		if f.settings.authorizer(e.GetName()) == nil {
			f.add(objects.Element("extensionProviders", i), "provider %q has no effect: only authorization services of Envoy (envoyExtAuthzGrpc, envoyExtAuthzHttp) are asked", e.GetName())
		}
	}
}

// outboundMode adds findings for outbound traffic policies of the mesh that are implemented
// differently.
func (f *findings) outboundMode() {
	policy := f.settings.Mesh.GetOutboundTrafficPolicy()
	switch mode := policy.GetMode(); {
	case mode == meshconfig.MeshConfig_OutboundTrafficPolicy_ALLOW_ANY_DYNAMIC_DNS && policy.GetTls() != nil:
		f.add("outboundTrafficPolicy.tls", "hosts are not looked up for each request, so that requests to unknown hosts cannot have TLS and are blocked")
	case mode == meshconfig.MeshConfig_OutboundTrafficPolicy_ALLOW_ANY_DYNAMIC_DNS:
		f.add("outboundTrafficPolicy.mode", "hosts are not looked up for each request: requests to unknown hosts go to their original addresses, as by ALLOW_ANY")
	case meshconfig.MeshConfig_OutboundTrafficPolicy_Mode_name[int32(mode)] == "":
		f.add("outboundTrafficPolicy.mode", "%d is not known: requests to unknown hosts are blocked, as by REGISTRY_ONLY", mode)
	}
}
