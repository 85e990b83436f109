// SPDX-License-Identifier: Apache-2.0

package realenvoy

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	setv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/common/set_filter_state/v3"
	httpinspector "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/listener/http_inspector/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	setnetwork "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/set_filter_state/v3"
	tcpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/internal/test/envoyproxy"
)

// TestMeshTLSWithoutProtocol: sidecars reach servers that do not know Istio's application
// protocols, and servers that know only these, on ports without a declared protocol: TCP unchanged,
// and any version of HTTP if the host's listeners detect it (docs/envoy.md).
func TestMeshTLSWithoutProtocol(t *testing.T) {
	for _, program := range envoyproxy.Programs(t) {
		t.Run(program.String(), func(t *testing.T) {
			eachProtocol(t, func(t *testing.T, delta bool) {
				t.Helper()
				testMeshTLSWithoutProtocol(t, program, delta)
			})
		})
	}
}

func testMeshTLSWithoutProtocol(t *testing.T, program envoyproxy.Program, delta bool) {
	t.Helper()
	m := &meshServers{t: t, issuer: newAuthority(t)}
	const unknown = `""`
	names := []string{"one", "both", "two", "istio1", "istio2", "raw", "istioraw"}
	objects := m.http("one", unknown, "http/1.1") + m.http("both", unknown, "h2", "http/1.1") + m.http("two", unknown, "h2") +
		m.inbound("istio1", unknown, hcm.HttpConnectionManager_HTTP1) + m.inbound("istio2", unknown, hcm.HttpConnectionManager_HTTP2) +
		m.http("raw", "TCP", "h2", "http/1.1") + m.inbound("istioraw", "TCP", hcm.HttpConnectionManager_HTTP1)
	p := startPlane(t, planeOptions{mesh: withoutMeshTLS()})
	secret := m.issuer.secret("spiffe://cluster.local/ns/ingress/sa/web")
	p.vault.set("ingress", "default", secret)
	p.vault.set("ingress", "ROOTCA", secret)
	for i, object := range strings.Split(strings.TrimSuffix(objects, "---"), "---") {
		// Sidecars detect the protocol of services with an address.
		p.Apply(strings.Replace(object, "location:", fmt.Sprintf("addresses: [240.0.0.%d]\n  location:", i+1), 1))
	}
	p.Applied()
	ports := make(map[string]string)
	var listeners []*listenerv3.Listener
	for i, port := range envoyproxy.FreePorts(t, len(names)) {
		name := names[i]
		ports[name] = strconv.Itoa(int(port))
		if strings.HasSuffix(name, "raw") {
			listeners = append(listeners, hostListener(t, port, passOn(name)))
		} else {
			listeners = append(listeners, detecting(t, port, name))
		}
	}
	proxy := envoyproxy.Start(t, envoyproxy.Options{
		Program: program, Node: envoyproxy.Node{Kind: "sidecar", Name: "web", Namespace: "ingress"},
		Server: p.Address, Delta: delta, OwnListeners: true, Listeners: listeners,
	})
	proxy.AwaitReady()
	p.Applied()
	one, two := newTransport(t), newTransport(t)
	two.Protocols = new(http.Protocols)
	two.Protocols.SetUnencryptedHTTP2(true)
	for _, c := range []struct {
		name      string
		transport *http.Transport
		want      string
	}{
		{"one", one, "one HTTP/1.1"},
		{"both", one, "both HTTP/1.1"},
		{"both", two, "both HTTP/2.0"},
		{"two", two, "two HTTP/2.0"},
		{"istio1", one, "istio1"},
		{"istio2", two, "istio2"},
		{"raw", one, "raw HTTP/1.1"},
		{"istioraw", one, "istioraw"},
	} {
		if got := bodyOf(t, c.transport, ports[c.name], c.name+".local.test"); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	p.Accepted()
	if refused, outmoded := proxy.Refused(), proxy.Outmoded(); len(refused)+len(outmoded) > 0 {
		t.Errorf("refused: %v, outmoded: %v", refused, outmoded)
	}
}

// bodyOf returns the answer to a request.
func bodyOf(t *testing.T, transport *http.Transport, port, host string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+local(port)+"/", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = host
	res, err := transport.RoundTrip(req)
	if err != nil {
		return err.Error()
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		t.Error(err)
	}
	return string(data)
}

func passOn(name string) *tcpv3.TcpProxy {
	return &tcpv3.TcpProxy{StatPrefix: name, ClusterSpecifier: &tcpv3.TcpProxy_Cluster{Cluster: "outbound|80||" + name + ".local.test"}}
}

// detecting is a listener of a host for a port without protocol: it detects the protocol of
// clients, and makes clusters offer it to the server after Istio's names.
func detecting(t *testing.T, port uint32, name string) *listenerv3.Listener {
	t.Helper()
	l := hostListener(t, port, passOn(name))
	l.ListenerFilters = []*listenerv3.ListenerFilter{{
		Name:       "envoy.filters.listener.http_inspector",
		ConfigType: &listenerv3.ListenerFilter_TypedConfig{TypedConfig: pack(t, &httpinspector.HttpInspector{})},
	}}
	for _, version := range []struct {
		offered  string
		detected []string
	}{{"http/1.1", []string{"http/1.0", "http/1.1"}}, {"h2", []string{"h2c"}}} {
		chain := &listenerv3.FilterChain{FilterChainMatch: &listenerv3.FilterChainMatch{ApplicationProtocols: version.detected}}
		for _, f := range []proto.Message{offering("istio-peer-exchange,istio," + version.offered), httpByRoutes(t, name+".local.test:80")} {
			chain.Filters = append(chain.Filters, &listenerv3.Filter{
				Name: string(f.ProtoReflect().Descriptor().Name()), ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: pack(t, f)},
			})
		}
		l.FilterChains = append(l.FilterChains, chain)
	}
	return l
}

// offering makes connections to servers offer application protocols.
func offering(protocols string) *setnetwork.Config {
	return &setnetwork.Config{OnNewConnection: []*setv3.FilterStateValue{{
		Key:                &setv3.FilterStateValue_ObjectKey{ObjectKey: "envoy.network.application_protocols"},
		SharedWithUpstream: setv3.FilterStateValue_ONCE,
		Value: &setv3.FilterStateValue_FormatString{FormatString: &core.SubstitutionFormatString{
			Format: &core.SubstitutionFormatString_TextFormatSource{TextFormatSource: &core.DataSource{
				Specifier: &core.DataSource_InlineString{InlineString: protocols},
			}},
		}},
	}}}
}
