// SPDX-License-Identifier: Apache-2.0

package debug

import (
	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/registry"
)

// conflictRow is a host name that is defined more than once.
type conflictRow struct {
	Hostname registry.Hostname `json:"hostname"`
	// Services are the definitions, at most maxDefinitions. Clients that have no nearer definition
	// use the first.
	Services []serviceRow `json:"services"`
	More     int          `json:"more,omitempty"`
}

// maxDefinitions is the maximum number of definitions of a host name in a row.
const maxDefinitions = 10

// conflictsPage is the content of the page of conflicts.
type conflictsPage struct {
	List list[conflictRow] `json:"list"`
}

func (h *handler) conflicts(q *query) (any, error) {
	var out conflictsPage
	var err error
	c, _ := registry.As[conflicter](h.Services)
	out.List, err = listOf(q, c.Conflicts(), func(c aggregate.Conflict) bool { return contains(q.text("q"), string(c.Hostname)) },
		func(c aggregate.Conflict) conflictRow {
			row := conflictRow{Hostname: c.Hostname, More: max(0, len(c.Services)-maxDefinitions)}
			for _, s := range c.Services[:min(len(c.Services), maxDefinitions)] {
				row.Services = append(row.Services, h.serviceRow(s))
			}
			return row
		})
	return out, err
}
