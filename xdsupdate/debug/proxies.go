// SPDX-License-Identifier: Apache-2.0

package debug

import (
	"maps"
	"slices"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
)

// proxyRow is one stream of a proxy in the list of proxies.
type proxyRow struct {
	ID        string             `json:"id"`
	Stream    uint64             `json:"stream"`
	Namespace string             `json:"namespace"`
	Cluster   registry.ClusterID `json:"cluster,omitempty"`
	Client    string             `json:"client"`
	Addresses []string           `json:"ip_addresses,omitempty"`
	Delta     bool               `json:"delta"`
	// Types is the number of subscribed types, Refusals the number of rejected resources, LeftOut
	// the number of objects left out because the proxy rejects them, and Failed the number of faults of
	// resources that cannot be built, or not completely.
	Types    int `json:"types"`
	Refusals int `json:"refusals"`
	LeftOut  int `json:"left_out"`
	Failed   int `json:"failed"`
	// Pending is set if a response or its ACK is outstanding, Overdue if it has been outstanding
	// for long.
	Pending bool `json:"pending"`
	Overdue bool `json:"overdue"`
	// Rejections is the number of NACKs on this stream.
	Rejections int `json:"rejections"`
}

// proxiesPage is the content of the page of proxies.
type proxiesPage struct {
	List list[proxyRow] `json:"list"`
}

// The values of the parameter state of the page of proxies.
const (
	stateRefusing = "refusing"
	statePending  = "pending"
	stateOverdue  = "overdue"
	stateFailed   = "failed"
)

func (h *handler) proxies(q *query) (any, error) {
	var out proxiesPage
	var err error
	faults := make(map[uint64][]ads.Fault)
	for _, f := range h.faults() {
		faults[f.Stream] = append(faults[f.Stream], f)
	}
	rowOf := func(p ads.ProxyStatus) proxyRow { return proxyRowOf(p, faults[p.Stream]) }
	out.List, err = listOf(q, h.Server.Proxies(), func(p ads.ProxyStatus) bool {
		return contains(q.text("q"), append(slices.Clone(p.IPAddresses), p.ID)...) &&
			(!q.is("namespace") || p.View.Namespace == q.text("namespace")) &&
			(!q.is("cluster") || string(p.View.Cluster) == q.text("cluster")) &&
			(!q.is("state") || rowOf(p).is(q.text("state")))
	}, rowOf)
	return out, err
}

func proxyRowOf(p ads.ProxyStatus, faults []ads.Fault) proxyRow {
	row := proxyRow{
		ID: p.ID, Stream: p.Stream, Namespace: p.View.Namespace, Cluster: p.View.Cluster, Client: p.View.Client.String(),
		Addresses: p.IPAddresses, Delta: p.Delta, Types: len(p.Types),
	}
	for _, t := range p.Types {
		row.Rejections += t.Rejections
		row.Pending, row.Overdue = row.Pending || t.Pending, row.Overdue || t.Overdue
	}
	for i, f := range faults {
		again := i > 0 && faults[i-1].TypeURL == f.TypeURL && faults[i-1].Name == f.Name // sorted by them
		switch f.Status {
		case ads.FaultNotBuilt, ads.FaultBuiltWithout:
			row.Failed++
			continue
		case ads.FaultLeftOut:
			row.LeftOut++
		default:
		}
		if !again {
			row.Refusals++
		}
	}
	return row
}

// is reports whether a proxy is in a state.
func (r proxyRow) is(state string) bool {
	switch state {
	case stateRefusing:
		return r.Refusals > 0
	case statePending:
		return r.Pending
	case stateOverdue:
		return r.Overdue
	case stateFailed:
		return r.Failed > 0
	default:
		return false
	}
}

func sortedTypes(types map[string]ads.TypeStatus) []string { return slices.Sorted(maps.Keys(types)) }
