// SPDX-License-Identifier: Apache-2.0

package realenvoy

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"testing"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	corsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/cors/v3"
	faultv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/fault/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tcpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/internal/test/envoyproxy"
)

func pack(t *testing.T, m proto.Message) *anypb.Any {
	t.Helper()
	out, err := anypb.New(m)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// hostListener is a listener that the program of a sidecar makes, with one network filter.
func hostListener(t *testing.T, port uint32, filter proto.Message) *listenerv3.Listener {
	t.Helper()
	return &listenerv3.Listener{Name: fmt.Sprint("host_", port), Address: envoyproxy.Address("127.0.0.1", port), FilterChains: []*listenerv3.FilterChain{{
		Filters: []*listenerv3.Filter{{Name: "only", ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: pack(t, filter)}}},
	}}}
}

// httpByRoutes serves HTTP by a route configuration of the server.
func httpByRoutes(t *testing.T, routes string) *hcm.HttpConnectionManager {
	t.Helper()
	m := &hcm.HttpConnectionManager{
		StatPrefix:     routes,
		RouteSpecifier: &hcm.HttpConnectionManager_Rds{Rds: &hcm.Rds{ConfigSource: envoyproxy.ADS(), RouteConfigName: routes}},
	}
	for _, f := range []proto.Message{&faultv3.HTTPFault{}, &corsv3.Cors{}, &routerv3.Router{}} {
		m.HttpFilters = append(m.HttpFilters, &hcm.HttpFilter{Name: filterName(f), ConfigType: &hcm.HttpFilter_TypedConfig{TypedConfig: pack(t, f)}})
	}
	return m
}

// filterName is the name of a filter in routes.
func filterName(f proto.Message) string {
	switch f.(type) {
	case *faultv3.HTTPFault:
		return "envoy.filters.http.fault"
	case *corsv3.Cors:
		return "envoy.filters.http.cors"
	default:
		return "envoy.filters.http.router"
	}
}

// sidecar is one whose host made a listener for HTTP on port 80 of services and one for
// TCP to a service.
type sidecar struct {
	*edge
	tcp string
}

func startSidecar(t *testing.T, delta bool, objects string) *sidecar {
	t.Helper()
	ports := envoyproxy.FreePorts(t, 2)
	s := &sidecar{
		edge: &edge{plane: startPlane(t, planeOptions{mesh: withoutMeshTLS()}), port: strconv.Itoa(int(ports[0])), client: &http.Client{Transport: newTransport(t)}},
		tcp:  strconv.Itoa(int(ports[1])),
	}
	s.Apply(objects)
	s.Applied()
	s.proxy = envoyproxy.Start(t, envoyproxy.Options{
		Node:   envoyproxy.Node{Kind: "sidecar", Name: "web", Namespace: "ingress", Labels: map[string]string{"app": "web"}},
		Server: s.Address, Delta: delta, OwnListeners: true,
		Listeners: []*listenerv3.Listener{
			hostListener(t, ports[0], httpByRoutes(t, "80")),
			hostListener(t, ports[1], &tcpv3.TcpProxy{StatPrefix: "echo", ClusterSpecifier: &tcpv3.TcpProxy_Cluster{Cluster: "outbound|80||echo.local.test"}}),
		},
	})
	s.proxy.AwaitReady()
	return s
}

const sidecarObjects = `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: shop, namespace: ingress}
spec:
  hosts: [shop.local.test]
  http:
  - match: [{sourceLabels: {app: other}}]
    directResponse: {status: 418}
  - match: [{headers: {x-version: {exact: two}}}]
    route: [{destination: {host: shop.local.test, subset: two}}]
  - match: [{uri: {prefix: /abort}}]
    fault: {abort: {httpStatus: 451, percentage: {value: 100}}}
    route: [{destination: {host: shop.local.test}}]
  - match: [{uri: {prefix: /retried}}]
    retries: {attempts: 2, retryOn: 5xx}
    route: [{destination: {host: shop.local.test, subset: one}}]
  - route: [{destination: {host: shop.local.test, subset: one}}]
`

// onlyShop lets sidecars of the namespace see one service, and nothing unknown.
const onlyShop = `
apiVersion: networking.istio.io/v1
kind: Sidecar
metadata: {name: default, namespace: ingress}
spec:
  outboundTrafficPolicy: {mode: REGISTRY_ONLY}
  egress: [{hosts: ["*/shop.local.test", "*/echo.local.test"]}]
`

// TestSidecar: HTTP routes, policies and Sidecars take effect behind listeners that the
// host makes, and TCP reaches clusters by their names.
func TestSidecar(t *testing.T) {
	eachProtocol(t, func(t *testing.T, delta bool) {
		t.Helper()
		one, two, hidden := startReporter(t, "one"), startReporter(t, "two"), startReporter(t, "hidden")
		s := startSidecar(t, delta, service("shop", "HTTP", one.endpoint(""), two.endpoint(""))+"---"+service("hidden", "HTTP", hidden.endpoint(""))+"---"+
			service("echo", "TCP", onPort(startEcho(t)))+"---"+policy("shop", oneAndTwo)+"---"+sidecarObjects)
		shop := []string{"host", "shop.local.test"}
		for _, c := range []struct {
			path    string
			headers []string
			want    string
		}{
			{"/", shop, "one"},
			{"/", []string{"host", "shop.local.test:80"}, "one"},
			{"/", []string{"host", "shop.local.test."}, "one"},
			{"/", append(shop, "x-version", "two"), "two"},
			{"/abort", shop, "451"},
			{"/retried", append(shop, "x-fail", "2"), "one"},
			{"/", []string{"host", "hidden.local.test"}, "hidden"},
		} {
			if got := s.who(c.path, c.headers...); got != c.want {
				t.Errorf("%s %v: %s, want %s", c.path, c.headers, got, c.want)
			}
		}
		s.testEcho()
		s.Apply(onlyShop)
		s.Applied()
		for host, want := range map[string]string{"shop.local.test": "one", "hidden.local.test": "502", "unknown.test": "502"} {
			if got := s.who("/", "host", host); got != want {
				t.Errorf("%s with a Sidecar: %s, want %s", host, got, want)
			}
		}
		s.testEcho()
		s.Delete(istio.Sidecar, "ingress", "default")
		s.Applied()
		s.await("hidden service", func() bool { return s.who("/", "host", "hidden.local.test") == "hidden" })
		s.fine()
	})
}

func (s *sidecar) testEcho() {
	s.TB.Helper()
	conn, err := (&net.Dialer{}).DialContext(s.TB.Context(), "tcp", local(s.tcp))
	if err != nil {
		s.TB.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "hello"); err != nil {
		s.TB.Fatal(err)
	}
	got := make([]byte, len("hello"))
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != "hello" {
		s.TB.Errorf("echo: %q, %v", got, err)
	}
}
