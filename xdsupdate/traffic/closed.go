// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"iter"
	"log/slog"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
)

// Closed returns the findings of Ineffective about security policies that are closed because a
// part of them is not known, or because they cannot be read (configstore.Unread). It is fast enough
// for readiness probes. It may be called from any goroutine.
func (p *Policies) Closed() []Ineffective {
	last := p.last.Load()
	if last == nil {
		return nil
	}
	return last.state.closed(last.state.Objects.All())
}

// closed returns the findings about those of some objects that are closed policies.
func (st *state) closed(among iter.Seq2[configstore.ConfigKey, objects.Object]) []Ineffective {
	var f *findings
	for _, o := range among {
		if o == nil || len(o.Base().Unread) == 0 {
			continue
		}
		if f == nil { // most often there are none
			f = newFindings(st)
		}
		f.object(o)
	}
	if f == nil {
		return nil
	}
	return sortedIneffective(f.found)
}

// logClosed logs the findings about new and changed objects that are closed policies.
func (p *Policies) logClosed(st *state, changed iter.Seq2[configstore.ConfigKey, objects.Object]) {
	for _, found := range st.closed(changed) {
		if text := found.String(); p.logged.Allow(text, "closed") {
			p.logger.Warn("policy is closed", slog.String("finding", text))
		}
	}
}
