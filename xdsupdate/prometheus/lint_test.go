// SPDX-License-Identifier: Apache-2.0

package prometheus_test

import (
	"testing"

	client "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/pilotkit/pilotkit/configstore/istio"
	configs "github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/prometheus"
)

// everything returns a registry with all metrics that there are, each with a series.
func everything(tb testing.TB) *client.Registry {
	tb.Helper()
	metrics := prometheus.New()
	return registered(tb, metrics, prometheus.NewServerCollector(ads.New(nil, ads.Options{Observer: metrics})),
		prometheus.NewConfigCollector(configs.Make(istio.Schemas())), prometheus.NewSourceCollector(knowsAll("all")))
}

// TestLint: the names, units and help texts are as Prometheus has them.
func TestLint(t *testing.T) {
	problems, err := testutil.GatherAndLint(everything(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	n, err := testutil.GatherAndCount(everything(t))
	if err != nil || n < 100 {
		t.Errorf("%d series, %v", n, err)
	}
}

// TestSeveralServers: the metrics of two servers in one process differ by a label of the host, the
// global registry stays empty, and one server's metrics are registered once.
func TestSeveralServers(t *testing.T) {
	all := client.NewPedanticRegistry()
	east, west := prometheus.New(), prometheus.New()
	client.WrapRegistererWith(client.Labels{"server": "east"}, all).MustRegister(east)
	client.WrapRegistererWith(client.Labels{"server": "west"}, all).MustRegister(west)
	east.StreamOpened(ads.Stream{})
	series(t, "two servers", scrape(t, all), map[string]float64{
		`pilotkit_xds_connected_proxies{protocol="sotw",server="east"}`: 1,
		`pilotkit_xds_connected_proxies{protocol="sotw",server="west"}`: 0,
	})
	families, err := client.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if name := family.GetName(); len(name) > 8 && name[:8] == "pilotkit" {
			t.Errorf("the global registry has %s", name)
		}
	}
	if err := registered(t, east).Register(west); err == nil {
		t.Error("two servers without a label were taken")
	}
}
