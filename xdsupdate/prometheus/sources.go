// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"fmt"
	"unicode/utf8"

	client "github.com/prometheus/client_golang/prometheus"
)

// NewSourceCollector returns a collector of how sources are. Sources whose names are
// empty, equal or not valid UTF-8, or that have no State, panic.
func NewSourceCollector(sources ...Source) client.Collector {
	seen := make(map[string]bool, len(sources))
	for i, source := range sources {
		switch name := source.Name; {
		case name == "" || !utf8.ValidString(name):
			panic(fmt.Sprintf("prometheus.NewSourceCollector: source %d: %q is no name", i, name))
		case seen[name]:
			panic(fmt.Sprintf("prometheus.NewSourceCollector: two sources have the name %q", name))
		case source.State == nil:
			panic(fmt.Sprintf("prometheus.NewSourceCollector: source %q: State is nil", name))
		}
		seen[source.Name] = true
	}
	c := &collector{}
	s := &sourceCollector{
		sources: append([]Source(nil), sources...),
		synced:  c.desc(nameSourceSynced, "Whether the first complete content of a source is there.", labelSource),
		stale:   c.desc(nameSourceStale, "Whether what is shown of a source may not be what its origin has.", labelSource),
		content: c.desc(nameSourceContent, "When the content that is shown was read from the source's origin, since the epoch.", labelSource),
		errors: c.desc(nameSourceErrors,
			"What keeps content of a source, or parts of it, from being taken: the last good state stays.", labelSource),
		warnings: c.desc(nameSourceWarnings, "What of a source is taken and questionable.", labelSource),
	}
	c.collect = s.collect
	return c
}

type sourceCollector struct {
	sources                                  []Source
	synced, stale, content, errors, warnings *client.Desc
}

func (s *sourceCollector) collect(metrics chan<- client.Metric) {
	for _, source := range s.sources {
		var state SourceState
		if !asking(metrics, s.synced, func() { state = source.State() }) {
			continue
		}
		metrics <- gauge(s.synced, truth(state.Synced), source.Name)
		if state.Stale != nil {
			metrics <- gauge(s.stale, truth(*state.Stale), source.Name)
		}
		if !state.Content.IsZero() {
			metrics <- gauge(s.content, float64(state.Content.UnixMilli())/1000, source.Name)
		}
		if state.Errors != nil {
			metrics <- gauge(s.errors, *state.Errors, source.Name)
		}
		if state.Warnings != nil {
			metrics <- gauge(s.warnings, *state.Warnings, source.Name)
		}
	}
}
