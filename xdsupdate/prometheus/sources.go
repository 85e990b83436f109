// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"slices"
	"time"

	client "github.com/prometheus/client_golang/prometheus"

	"github.com/pilotkit/pilotkit/configstore"
)

// NewSourceCollector returns a collector of the state of sources (see configstore.SourceOf). The
// values of the label source are the names of the sources. Each scrape calls State of each source;
// if one panics, the scrape has an error instead of its metrics. Sources that
// configstore.CheckSources rejects panic.
func NewSourceCollector(sources ...configstore.Source) client.Collector {
	if err := configstore.CheckSources(sources); err != nil {
		panic("prometheus.NewSourceCollector: " + err.Error())
	}
	c := &collector{}
	s := &sourceCollector{
		sources: slices.Clone(sources),
		synced:  c.desc(nameSourceSynced, "Whether the first complete content of a source is there.", labelSource),
		stale:   c.desc(nameSourceStale, "Whether what is shown of a source may not be what its origin has.", labelSource),
		staleSince: c.desc(nameSourceStaleSince,
			"Since when what is shown of a source may not be what its origin has, since the epoch.", labelSource),
		content: c.desc(nameSourceContent, "When the content that is shown was read from the source's origin, since the epoch.", labelSource),
		errors: c.desc(nameSourceErrors,
			"What keeps content of a source, or parts of it, from being taken: the last good state stays.", labelSource),
		warnings: c.desc(nameSourceWarnings, "What of a source is taken and questionable.", labelSource),
	}
	c.collect = s.collect
	return c
}

type sourceCollector struct {
	sources                                              []configstore.Source
	synced, stale, staleSince, content, errors, warnings *client.Desc
}

func (s *sourceCollector) collect(metrics chan<- client.Metric) {
	for _, source := range s.sources {
		var state configstore.SourceState
		if !asking(metrics, s.synced, func() { state = source.State() }) {
			continue
		}
		metrics <- gauge(s.synced, truth(state.Synced), source.Name)
		if state.Freshness != configstore.FreshnessUnknown {
			metrics <- gauge(s.stale, truth(state.Freshness == configstore.Stale), source.Name)
		}
		for of, at := range map[*client.Desc]time.Time{s.staleSince: state.StaleSince, s.content: state.Content} {
			if !at.IsZero() {
				metrics <- gauge(of, float64(at.UnixMilli())/1000, source.Name)
			}
		}
		errs, warnings := state.Count()
		metrics <- gauge(s.errors, errs, source.Name)
		metrics <- gauge(s.warnings, warnings, source.Name)
	}
}
