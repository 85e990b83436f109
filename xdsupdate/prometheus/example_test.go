// SPDX-License-Identifier: Apache-2.0

package prometheus_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	client "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/file"
	"github.com/pilotkit/pilotkit/configstore/istio"
	configs "github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/prometheus"
)

// A program gives the server its observer, registers the collectors that it wants with a
// registry of its own, and serves that.
func Example() {
	store := configs.Make(istio.Schemas())
	source := file.New("config", store)

	metrics := prometheus.New()
	server := ads.New(aggregate.NewController(), ads.Options{Observer: metrics})
	registry := client.NewRegistry()
	registry.MustRegister(metrics, prometheus.NewServerCollector(server), prometheus.NewConfigCollector(store),
		prometheus.NewSourceCollector(configstore.SourceOf("config", source)))
	handler := promhttp.HandlerFor(registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError})

	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, httptest.NewRequestWithContext(context.Background(), http.MethodGet, "/metrics", nil))
	for line := range strings.Lines(answer.Body.String()) {
		if strings.HasPrefix(line, "pilotkit_xds_connected_proxies") || strings.HasPrefix(line, "pilotkit_source") {
			fmt.Print(line)
		}
	}
	// Output:
	// pilotkit_source_errors{source="config"} 0
	// pilotkit_source_synced{source="config"} 0
	// pilotkit_source_warnings{source="config"} 0
	// pilotkit_xds_connected_proxies{protocol="delta"} 0
	// pilotkit_xds_connected_proxies{protocol="sotw"} 0
}
