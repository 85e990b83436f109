// SPDX-License-Identifier: Apache-2.0

package realenvoy

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/test/envoyproxy"
)

// gatewayHosts is how many hosts, clusters and VirtualServices the gateway of the
// benchmarks has on its plain port.
const gatewayHosts = 10_000

// largeGateway is a gateway with many hosts. The first one leads to two backends, of
// which one counts at a time.
type largeGateway struct {
	*plane
	port   uint32
	one    *reporter
	two    *reporter
	client *http.Client
}

// startLargeGateway runs the control plane of one.
func startLargeGateway(b *testing.B) *largeGateway {
	b.Helper()
	g := &largeGateway{port: envoyproxy.FreePorts(b, 1)[0], client: &http.Client{Transport: newTransport(b), Timeout: testTimeout}}
	g.one, g.two = startReporter(b, "one"), startReporter(b, "two")
	objects := []configstore.Config{configstore.NewConfig("edge", "ingress", plainGateway(g.port)).Config()}
	for i := range gatewayHosts {
		objects = append(objects, serviceOf(i, g.one), routeOf(i, i))
	}
	g.plane = startPlane(b, planeOptions{mesh: withoutMeshTLS(), objects: objects})
	return g
}

func plainGateway(port uint32) *networking.Gateway {
	return &networking.Gateway{
		Selector: map[string]string{"app": "edge"},
		Servers: []*networking.Server{{
			Port: &networking.Port{Number: port, Name: "http", Protocol: "HTTP"}, Bind: "127.0.0.1", Hosts: []string{"*"},
		}},
	}
}

// serviceOf is a service with a number behind a backend.
func serviceOf(i int, behind *reporter) configstore.Config {
	port := uint32(behind.Listener.Addr().(*net.TCPAddr).Port)
	return configstore.NewConfig(fmt.Sprintf("s%d", i), "ingress", &networking.ServiceEntry{
		Hosts: []string{fmt.Sprintf("s%d.local.test", i)}, Location: networking.ServiceEntry_MESH_INTERNAL, Resolution: networking.ServiceEntry_STATIC,
		Ports:     []*networking.ServicePort{{Number: 80, Name: "p", Protocol: "HTTP"}},
		Endpoints: []*networking.WorkloadEntry{{Address: "127.0.0.1", Ports: map[string]uint32{"p": port}}},
	}).Config()
}

// routeOf leads a host with a number to a service.
func routeOf(host, service int) configstore.Config {
	return configstore.NewConfig(fmt.Sprintf("s%d", host), "ingress", &networking.VirtualService{
		Hosts: []string{fmt.Sprintf("s%d.example.com", host)}, Gateways: []string{"edge"},
		Http: []*networking.HTTPRoute{{Route: []*networking.HTTPRouteDestination{{
			Destination: &networking.Destination{Host: fmt.Sprintf("s%d.local.test", service)},
		}}}},
	}).Config()
}

// plainText is a DestinationRule of a service. With TLS, which no backend speaks,
// requests fail.
func plainText(service int, mode networking.ClientTLSSettings_TLSmode) configstore.Config {
	return configstore.NewConfig(fmt.Sprintf("s%d", service), "ingress", &networking.DestinationRule{
		Host: fmt.Sprintf("s%d.local.test", service), TrafficPolicy: &networking.TrafficPolicy{Tls: &networking.ClientTLSSettings{Mode: mode}},
	}).Config()
}

// set creates or replaces an object.
func (g *largeGateway) set(c configstore.Config) {
	g.TB.Helper()
	if _, err := configstore.Upsert(g.Configs, c); err != nil {
		g.TB.Fatal(err)
	}
}

// answers waits until requests for a host are answered by a backend, or with a status. It polls
// after a millisecond, and then each time after a twentieth of the elapsed time, so that polling
// costs a negligible part of the measurement.
func (g *largeGateway) answers(host int, want string) {
	g.TB.Helper()
	begun := time.Now()
	again := time.NewTimer(0)
	defer again.Stop()
	for <-again.C; !g.answersNow(host, want); <-again.C {
		passed := time.Since(begun)
		if passed > 2*testTimeout {
			g.TB.Fatalf("no answer %q for host %d", want, host)
		}
		again.Reset(max(time.Millisecond, passed/20))
	}
}

func (g *largeGateway) answersNow(host int, want string) bool {
	g.TB.Helper()
	req, err := http.NewRequestWithContext(g.TB.Context(), http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/", g.port), http.NoBody)
	if err != nil {
		g.TB.Fatal(err)
	}
	req.Host = fmt.Sprintf("s%d.example.com", host)
	res, err := g.client.Do(req)
	if err != nil {
		return false // there is no listener yet
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, res.Body) // so that the connection is used again
	return res.Header.Get("x-backend") == want || fmt.Sprint(res.StatusCode) == want
}

// eachProtocolOf runs a benchmark once for each protocol of xDS.
func eachProtocolOf(b *testing.B, bench func(b *testing.B, delta bool)) {
	b.Helper()
	envoyproxy.Require(b)
	for _, protocol := range []string{"SotW", "delta"} {
		b.Run(protocol, func(b *testing.B) { bench(b, protocol == "delta") })
	}
}

// BenchmarkGatewayReady starts an Envoy for a gateway with 10,000 hosts, and ends when
// the last one is served. The CPU of the server is that of this process.
func BenchmarkGatewayReady(b *testing.B) {
	eachProtocolOf(b, func(b *testing.B, delta bool) {
		b.Helper()
		g := startLargeGateway(b)
		var used usage
		for b.Loop() {
			before := usageOf(nil)
			proxy := g.edge(delta)
			g.answers(gatewayHosts-1, "one")
			proxy.AwaitReady()
			used.add(usageOf(proxy).minus(before))
			proxy.Stop()
		}
		used.report(b)
	})
}

// BenchmarkGatewayChange changes one object of a gateway with 10,000 hosts, and ends when
// a request shows it. The CPU includes that of the requests that ask for it.
func BenchmarkGatewayChange(b *testing.B) {
	eachProtocolOf(b, func(b *testing.B, delta bool) {
		b.Helper()
		g := startLargeGateway(b)
		g.set(serviceOf(gatewayHosts, g.two)) // where a route may lead to
		proxy := g.edge(delta)
		proxy.AwaitReady()
		g.answers(0, "one")
		for _, change := range []struct {
			name string
			make func(odd bool) (c configstore.Config, host int, want string)
		}{
			{"endpoint", func(odd bool) (configstore.Config, int, string) {
				if odd {
					return serviceOf(0, g.two), 0, "two"
				}
				return serviceOf(0, g.one), 0, "one"
			}},
			{"route", func(odd bool) (configstore.Config, int, string) {
				if odd {
					return routeOf(1, gatewayHosts), 1, "two"
				}
				return routeOf(1, 1), 1, "one"
			}},
			{"cluster", func(odd bool) (configstore.Config, int, string) {
				if odd {
					return plainText(2, networking.ClientTLSSettings_SIMPLE), 2, "503"
				}
				return plainText(2, networking.ClientTLSSettings_DISABLE), 2, "one"
			}},
		} {
			b.Run(change.name, func(b *testing.B) {
				odd := false
				before := usageOf(proxy)
				for b.Loop() {
					odd = !odd
					c, host, want := change.make(odd)
					g.set(c)
					g.answers(host, want)
				}
				usageOf(proxy).minus(before).report(b)
			})
		}
	})
}

// BenchmarkGatewaySecrets starts an Envoy for a gateway with 1,000 HTTPS servers, and
// ends when the last one to be looked at is served with its own certificate.
func BenchmarkGatewaySecrets(b *testing.B) {
	const n = 1000
	eachProtocolOf(b, func(b *testing.B, delta bool) {
		b.Helper()
		p := startPlane(b, planeOptions{mesh: withoutMeshTLS()})
		port, issuer := envoyproxy.FreePorts(b, 1)[0], newAuthority(b)
		for i := range n {
			name := fmt.Sprintf("s%d", i)
			p.vault.set("ingress", "kubernetes://"+name, issuer.secret(name+".example.com"))
			p.Apply(secureObjects, "SECURE", fmt.Sprint(port), "name: edge", "name: "+name, "credentialName: edge", "credentialName: "+name,
				"shop.example.com", name+".example.com", "gateways: [edge]", "gateways: ["+name+"]", "name: shop", "name: "+name)
		}
		p.Applied()
		var used usage
		for b.Loop() {
			before := usageOf(nil)
			proxy := p.edge(delta)
			for i := n - 1; i >= 0; i -= 111 {
				proxy.Await("certificate", func() bool { return handshakes(b, port, fmt.Sprintf("s%d.example.com", i), issuer) })
			}
			proxy.AwaitReady()
			used.add(usageOf(proxy).minus(before))
			proxy.Stop()
		}
		used.report(b)
	})
}

// handshakes reports whether a TLS client is served as a host.
func handshakes(b *testing.B, port uint32, host string, issuer *authority) bool {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), soon)
	defer cancel()
	d := &tls.Dialer{Config: &tls.Config{RootCAs: issuer.Pool(), ServerName: host, MinVersion: tls.VersionTLS12}}
	conn, err := d.DialContext(ctx, "tcp", local(fmt.Sprint(port)))
	if err != nil {
		return false
	}
	return conn.Close() == nil
}

// usage is CPU time, of this process and of an Envoy.
type usage struct{ server, envoy time.Duration }

// usageOf returns the resources used so far; a nil Envoy has used none.
func usageOf(proxy *envoyproxy.Proxy) usage {
	u := usage{server: cpuTime("self")}
	if proxy != nil {
		u.envoy = cpuTime(fmt.Sprint(proxy.ProcessID()))
	}
	return u
}

func (u *usage) add(o usage) { u.server, u.envoy = u.server+o.server, u.envoy+o.envoy }

func (u usage) minus(o usage) usage { return usage{u.server - o.server, u.envoy - o.envoy} }

func (u usage) report(b *testing.B) {
	b.Helper()
	perOp := func(d time.Duration) float64 { return milliseconds(d) / float64(b.N) }
	b.ReportMetric(float64(b.Elapsed())/float64(time.Millisecond)/float64(b.N), "ms/op")
	b.ReportMetric(perOp(u.server), "server-cpu-ms/op")
	b.ReportMetric(perOp(u.envoy), "envoy-cpu-ms/op")
}

// cpuTime returns the CPU time of a process, in steps of 10 ms, as Linux has it; 0
// elsewhere.
func cpuTime(pid string) time.Duration {
	data, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(data), ") ") // the name of the program may have spaces
	fields := strings.Fields(rest)
	var user, system int64
	if len(fields) < 13 {
		return 0
	}
	_, _ = fmt.Sscan(fields[11], &user)
	_, _ = fmt.Sscan(fields[12], &system)
	return time.Duration(user+system) * 10 * time.Millisecond
}
