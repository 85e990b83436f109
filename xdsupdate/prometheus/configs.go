// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	client "github.com/prometheus/client_golang/prometheus"

	"github.com/pilotkit/pilotkit/configstore"
)

// NewConfigCollector returns a collector of the number of objects of each kind in a store or a
// cache. Each scrape lists all kinds; the stores of this library return the same list as long as
// nothing has changed. A nil store panics.
func NewConfigCollector(configs configstore.Reader) client.Collector {
	if configs == nil {
		panic("prometheus.NewConfigCollector: no store")
	}
	c := &collector{}
	count := c.desc(nameConfigs, "Objects in the store, by API group, version and kind.", labelGroup, labelVersion, labelKind)
	c.collect = func(metrics chan<- client.Metric) {
		var out []client.Metric
		if asking(metrics, count, func() {
			for _, schema := range configs.Schemas().All() {
				kind := schema.GroupVersionKind
				out = append(out, gauge(count, len(configs.List(kind, configstore.NamespaceAll)), kind.Group, kind.Version, kind.Kind))
			}
		}) {
			for _, m := range out {
				metrics <- m
			}
		}
	}
	return c
}
