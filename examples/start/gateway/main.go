// SPDX-License-Identifier: Apache-2.0

// Command gateway is a gateway with a data plane of its own: a reverse proxy of net/http whose
// services come from a directory of ServiceEntries and WorkloadEntries.
package main

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/configstore/file"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/serviceentry"
)

// gateway passes each request on to a healthy endpoint of the service that its host names.
type gateway struct {
	services registry.ServiceDiscovery
	turn     atomic.Uint64
}

// ServeHTTP implements http.Handler. Lookups read an immutable snapshot and take no lock.
func (g *gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	service := g.services.GetService(registry.Hostname(r.Host))
	if service == nil {
		http.Error(w, "no service "+r.Host, http.StatusNotFound)
		return
	}
	var healthy []*registry.Endpoint
	for _, i := range g.services.InstancesByPort(service, 80) {
		if health := i.Endpoint.HealthStatus; health == registry.HealthUnset || health == registry.Healthy {
			healthy = append(healthy, i.Endpoint)
		}
	}
	if len(healthy) == 0 {
		http.Error(w, "no healthy endpoint of "+r.Host, http.StatusServiceUnavailable)
		return
	}
	to := healthy[g.turn.Inc()%uint64(len(healthy))]
	proxy := httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) {
		p.SetURL(&url.URL{Scheme: "http", Host: fmt.Sprintf("%s:%d", to.Address(), to.EndpointPort)})
	}}
	proxy.ServeHTTP(w, r)
}

const entry = `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: cart, namespace: shop}
spec:
  hosts: [cart.example.com]
  ports: [{number: 80, name: http, protocol: HTTP}]
  resolution: STATIC
  endpoints: [{address: 127.0.0.1, ports: {http: PORT}}]
`

func main() {
	dir, err := os.MkdirTemp("", "gateway")
	check(err)
	defer os.RemoveAll(dir)
	store := memory.Make(istio.Schemas())
	configs := memory.NewController(store)
	files := file.New(dir, store)
	front := httptest.NewServer(&gateway{services: serviceentry.New(configs, nil)})
	defer front.Close()

	// A program runs files.Run and configs.Run; here each edit is applied at once.
	apply := func(text string) {
		check(os.WriteFile(filepath.Join(dir, "cart.yaml"), []byte(text), 0o600))
		check(files.Reload())
		configs.Drain()
		for _, e := range files.Errors() {
			fmt.Println("error:", e.Err)
		}
	}
	for _, name := range []string{"one", "two"} {
		backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, name) }))
		defer backend.Close()
		apply(strings.ReplaceAll(entry, "PORT", backend.URL[strings.LastIndex(backend.URL, ":")+1:]))
		call(front.URL, "cart.example.com")
	}
	apply(strings.ReplaceAll(entry, "PORT", "http")) // the last good state stays
	call(front.URL, "cart.example.com")
	call(front.URL, "other.example.com")
}

func call(address, host string) {
	request, err := http.NewRequest(http.MethodGet, address, nil)
	check(err)
	request.Host = host
	response, err := http.DefaultClient.Do(request)
	check(err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	check(err)
	fmt.Println(host, response.StatusCode, strings.TrimSpace(string(body)))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
