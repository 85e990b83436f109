// SPDX-License-Identifier: Apache-2.0

package debug

import (
	"fmt"
	"maps"
	"slices"
	"strings"

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
	// the number of objects left out of the proxy's resources, and Failed the number of resources
	// that cannot be built for it.
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
	out.List, err = listOf(q, h.Server.Proxies(), func(p ads.ProxyStatus) bool {
		return contains(q.text("q"), append(slices.Clone(p.IPAddresses), p.ID)...) &&
			(!q.is("namespace") || p.View.Namespace == q.text("namespace")) &&
			(!q.is("cluster") || string(p.View.Cluster) == q.text("cluster")) &&
			(!q.is("state") || proxyRowOf(p).is(q.text("state")))
	}, proxyRowOf)
	return out, err
}

func proxyRowOf(p ads.ProxyStatus) proxyRow {
	row := proxyRow{
		ID: p.ID, Stream: p.Stream, Namespace: p.View.Namespace, Cluster: p.View.Cluster, Client: p.View.Client.String(),
		Addresses: p.IPAddresses, Delta: p.Delta, Types: len(p.Types),
	}
	for _, t := range p.Types {
		row.Refusals += len(t.Refusals)
		row.Failed += len(t.Failed)
		row.Rejections += t.Rejections
		row.Pending, row.Overdue = row.Pending || t.Pending, row.Overdue || t.Overdue
		for _, r := range t.Refusals {
			row.LeftOut += len(r.LeftOut)
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

// String describes the rejected resource, and the objects that are left out of it.
func (r refusedRow) String() string {
	text := fmt.Sprintf("%s: %s %s: %s", r.Proxy, typeName(r.TypeURL), r.Name, r.Error)
	if len(r.LeftOut) == 0 {
		return text
	}
	var names []string
	for _, l := range r.LeftOut {
		names = append(names, l.Object.String())
	}
	return text + " (left out: " + strings.Join(names, ", ") + ")"
}

// refusedRows returns the resources that a proxy rejects.
func refusedRows(p ads.ProxyStatus) (out []refusedRow) {
	for _, typeURL := range sortedTypes(p.Types) {
		for _, r := range p.Types[typeURL].Refusals {
			row := refusedRow{p.ID, p.Stream, typeURL, r.Name, redactText(r.Error), nil}
			row.LeftOut = leftObjects(r.LeftOut)
			out = append(out, row)
		}
	}
	return out
}

func leftObjects(list []ads.LeftOut) (out []leftObject) {
	for _, l := range list {
		out = append(out, leftObject{objectOf(l.Object), redactText(l.Error)})
	}
	return out
}
