// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	client "github.com/prometheus/client_golang/prometheus"

	"github.com/pilotkit/pilotkit/internal/guard"
)

// collector is a Collector that computes its metrics in each scrape.
type collector struct {
	descs   []*client.Desc
	collect func(metrics chan<- client.Metric)
}

// Describe implements Collector.
func (c *collector) Describe(descs chan<- *client.Desc) {
	for _, d := range c.descs {
		descs <- d
	}
}

// Collect implements Collector.
func (c *collector) Collect(metrics chan<- client.Metric) { c.collect(metrics) }

// desc adds the description of a metric.
func (c *collector) desc(name, help string, labels ...string) *client.Desc {
	d := client.NewDesc(name, help, labels, nil)
	c.descs = append(c.descs, d)
	return d
}

// asking calls ask, which may call a function of the host. If it panics, asking emits an error
// instead of the remaining metrics, because a panic on a goroutine of the client library would end
// the process.
func asking(metrics chan<- client.Metric, of *client.Desc, ask func()) (ok bool) {
	if p := guard.Call(ask); p != nil {
		metrics <- client.NewInvalidMetric(of, p)
		return false
	}
	return true
}

// gauge returns a gauge with a value.
func gauge[N ~int | ~int64 | float64](of *client.Desc, value N, labels ...string) client.Metric {
	return client.MustNewConstMetric(of, client.GaugeValue, float64(value), labels...)
}

// truth returns 1 for true and 0 for false.
func truth(b bool) int {
	if b {
		return 1
	}
	return 0
}
