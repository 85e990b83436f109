// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	meshconfig "istio.io/api/mesh/v1alpha1"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
)

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
		"defaultConfig.gatewayTopology", "defaultConfig.proxyHeaders.attemptCount",
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
