// SPDX-License-Identifier: Apache-2.0

package xdsbuild

import (
	"sync"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	http "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"google.golang.org/protobuf/types/known/anypb"
	meshconfig "istio.io/api/mesh/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/registry"
)

// httpProtocolOptions is the name of an extension and its key in a cluster.
const httpProtocolOptions = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"

// setProtocol sets the HTTP protocol of an Envoy. Without options Envoys speak HTTP/1.
func (u *Upstream) setProtocol(c *clusterv3.Cluster) {
	options := &http.HttpProtocolOptions{
		CommonHttpProtocolOptions:   u.commonOptions(),
		UpstreamHttpProtocolOptions: u.autoNames(),
		OutlierDetection:            errorMatcher(u.Policy.GetOutlierDetection()),
	}
	explicit := options.GetCommonHttpProtocolOptions() != nil || options.GetUpstreamHttpProtocolOptions() != nil ||
		options.GetOutlierDetection() != nil
	switch {
	case u.downstreamProtocol():
		options.UpstreamProtocolOptions = &http.HttpProtocolOptions_UseDownstreamProtocolConfig{
			UseDownstreamProtocolConfig: &http.HttpProtocolOptions_UseDownstreamHttpConfig{
				HttpProtocolOptions: &core.Http1ProtocolOptions{}, Http2ProtocolOptions: &core.Http2ProtocolOptions{},
			},
		}
	case u.http2() && !explicit && u.Policy.GetConnectionPool() == nil && u.Service.Resolution != registry.DynamicDNS:
		c.TypedExtensionProtocolOptions = map[string]*anypb.Any{httpProtocolOptions: {TypeUrl: typeURL(options), Value: plainHTTP2()}}
		return
	case u.http2():
		options.UpstreamProtocolOptions = explicitly(&http.HttpProtocolOptions_ExplicitHttpConfig{
			ProtocolConfig: &http.HttpProtocolOptions_ExplicitHttpConfig_Http2ProtocolOptions{Http2ProtocolOptions: u.http2Options()},
		})
	case explicit:
		options.UpstreamProtocolOptions = explicitly(&http.HttpProtocolOptions_ExplicitHttpConfig{
			ProtocolConfig: &http.HttpProtocolOptions_ExplicitHttpConfig_HttpProtocolOptions{
				HttpProtocolOptions: &core.Http1ProtocolOptions{},
			},
		})
	default:
		return
	}
	if u.Service.Resolution == registry.DynamicDNS {
		// The server may be any host that a request names. Envoy rejects a dynamic forward proxy
		// whose options do not verify that host.
		options.UpstreamHttpProtocolOptions = &core.UpstreamHttpProtocolOptions{AutoSni: true, AutoSanValidation: true}
	}
	c.TypedExtensionProtocolOptions = map[string]*anypb.Any{httpProtocolOptions: packed(options)}
}

// plainHTTP2 returns the encoded options of HTTP/2 without settings, which most clusters with HTTP/2
// have. The caller must not change the bytes.
//
//nolint:gochecknoglobals // never changed
var plainHTTP2 = sync.OnceValue(func() []byte {
	return packed(&http.HttpProtocolOptions{UpstreamProtocolOptions: explicitly(&http.HttpProtocolOptions_ExplicitHttpConfig{
		ProtocolConfig: &http.HttpProtocolOptions_ExplicitHttpConfig_Http2ProtocolOptions{Http2ProtocolOptions: &core.Http2ProtocolOptions{}},
	})}).GetValue()
})

func explicitly(config *http.HttpProtocolOptions_ExplicitHttpConfig) *http.HttpProtocolOptions_ExplicitHttpConfig_ {
	return &http.HttpProtocolOptions_ExplicitHttpConfig_{ExplicitHttpConfig: config}
}

// http2 reports whether connections are always HTTP/2.
func (u *Upstream) http2() bool {
	if u.downstreamProtocol() {
		return false
	}
	if u.Port.Protocol.IsHTTP2() {
		return true
	}
	switch u.Policy.GetConnectionPool().GetHttp().GetH2UpgradePolicy() {
	case networking.ConnectionPoolSettings_HTTPSettings_UPGRADE:
		return true
	case networking.ConnectionPoolSettings_HTTPSettings_DO_NOT_UPGRADE:
		return false
	default:
		return u.Port.Protocol.IsHTTP() && u.Mesh.GetH2UpgradePolicy() == meshconfig.MeshConfig_UPGRADE
	}
}

// downstreamProtocol reports whether upstream connections use the protocol of the downstream
// client. Sidecars do for a port without protocol, because they see the protocol that the client
// speaks to the service. A gateway does not, because the protocol that a browser negotiates with
// the gateway is unrelated to the service.
func (u *Upstream) downstreamProtocol() bool {
	pool := u.Policy.GetConnectionPool().GetHttp()
	if pool.GetUseClientProtocol() {
		return true
	}
	return u.Port.Protocol == registry.ProtocolUnsupported && !u.Gateway &&
		pool.GetH2UpgradePolicy() != networking.ConnectionPoolSettings_HTTPSettings_UPGRADE
}

// commonOptions returns the options for all versions of HTTP, or nil. Envoy applies them to TCP
// connections, too. Options for HTTP/2 alone make them empty, as in Istio.
func (u *Upstream) commonOptions() *core.HttpProtocolOptions {
	tcp, pool := u.Policy.GetConnectionPool().GetTcp(), u.Policy.GetConnectionPool().GetHttp()
	idle := pool.GetIdleTimeout()
	if idle == nil {
		idle = tcp.GetIdleTimeout()
	}
	if pool == nil && tcp == nil {
		return nil
	}
	out := &core.HttpProtocolOptions{MaxConnectionDuration: positive(tcp.GetMaxConnectionDuration())}
	if idle != nil {
		out.IdleTimeout = duration(idle) // 0 disables Envoy's default of an hour
	}
	if n := pool.GetMaxRequestsPerConnection(); n > 0 {
		out.MaxRequestsPerConnection = unsigned(n)
	}
	if out.GetIdleTimeout() == nil && out.GetMaxConnectionDuration() == nil && out.GetMaxRequestsPerConnection() == nil &&
		pool.GetMaxConcurrentStreams() <= 0 && pool.GetHttp2KeepAlive() == nil {
		return nil
	}
	return out
}

func (u *Upstream) http2Options() *core.Http2ProtocolOptions {
	pool := u.Policy.GetConnectionPool().GetHttp()
	out := &core.Http2ProtocolOptions{}
	if n := pool.GetMaxConcurrentStreams(); n > 0 {
		out.MaxConcurrentStreams = unsigned(n)
	}
	// Envoy rejects keepalive without a timeout, and times below a millisecond.
	if k := pool.GetHttp2KeepAlive(); k.GetTimeout().AsDuration() >= time.Millisecond {
		out.ConnectionKeepalive = &core.KeepaliveSettings{Timeout: duration(k.GetTimeout())}
		if k.GetInterval().AsDuration() >= time.Millisecond {
			out.ConnectionKeepalive.Interval = duration(k.GetInterval())
		}
	}
	return out
}

// autoNames makes Envoy derive the server name, and the name to verify, from the request, for TLS
// without a configured name. Envoy rejects auto_san_validation without auto_sni.
func (u *Upstream) autoNames() *core.UpstreamHttpProtocolOptions {
	t := u.usableTLS()
	if t == nil || u.AutoPassthrough || t.GetMode() == networking.ClientTLSSettings_ISTIO_MUTUAL || t.GetSni() != "" {
		return nil
	}
	return &core.UpstreamHttpProtocolOptions{
		AutoSni:           true,
		AutoSanValidation: len(t.GetSubjectAltNames())+len(u.Service.ServiceAccounts) == 0 && !t.GetInsecureSkipVerify().GetValue(),
	}
}
