// SPDX-License-Identifier: Apache-2.0

package debug

import (
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/serviceentry/explain"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// workloadPage lists the ServiceEntries that select a workload, and explains why others do not.
type workloadPage struct {
	Namespace string             `json:"namespace"`
	Name      string             `json:"name"`
	Kind      string             `json:"kind"` // "WorkloadEntry" or "Pod"
	Cluster   registry.ClusterID `json:"cluster,omitempty"`
	// Asked reports whether the request names a workload.
	Asked bool `json:"asked"`
	// Answers are the explanations of the ServiceEntry registries.
	Answers []workloadAnswer `json:"answers"`
}

type workloadAnswer struct {
	// Ignored explains why the workload is ignored altogether, "" if it is not.
	Ignored  string          `json:"ignored,omitempty"`
	Endpoint *endpointRow    `json:"endpoint,omitempty"`
	Entries  []selectionRow  `json:"entries,omitempty"`
	Labels   registry.Labels `json:"labels,omitempty"`
	More     int             `json:"more,omitempty"` // number of entries that are not in Entries
}

// selectionRow explains whether a ServiceEntry selects the workload.
type selectionRow struct {
	Entry       object              `json:"entry"`
	Hosts       []registry.Hostname `json:"hosts,omitempty"`
	Selected    bool                `json:"selected"`
	WhyNot      string              `json:"why_not,omitempty"`
	Ports       map[string]uint32   `json:"ports,omitempty"`
	UnusedPorts []string            `json:"unused_ports,omitempty"`
}

func (h *handler) workload(q *query) (any, error) {
	out := &workloadPage{
		Namespace: q.text("namespace"), Name: q.text("name"), Kind: registry.WorkloadEntry.String(), Cluster: registry.ClusterID(q.text("cluster")),
		Answers: []workloadAnswer{},
	}
	key := registry.WorkloadKey{Cluster: out.Cluster, Kind: registry.WorkloadEntry, Namespace: out.Namespace, Name: out.Name}
	if q.text("kind") == registry.Pod.String() {
		key.Kind, out.Kind = registry.Pod, registry.Pod.String()
	}
	if out.Asked = key.Name != ""; !out.Asked {
		return out, nil
	}
	for _, c := range h.serviceEntries() {
		out.Answers = append(out.Answers, workloadAnswerOf(explain.Workload(c, key)))
	}
	return out, nil
}

func workloadAnswerOf(e explain.WorkloadExplanation) workloadAnswer {
	out := workloadAnswer{Ignored: e.Ignored, More: max(0, len(e.Entries)-maxLimit)}
	if e.Endpoint != nil {
		row := endpointRowOf(xdsupdate.ShardKey{}, e.Endpoint)
		out.Endpoint, out.Labels = &row, row.Labels
	}
	for _, s := range e.Entries[:min(len(e.Entries), maxLimit)] {
		out.Entries = append(out.Entries, selectionRow{
			object{Kind: "ServiceEntry", Namespace: s.Namespace, Name: s.Name}, s.Hosts, s.WhyNot == "", s.WhyNot, s.Ports, s.UnusedPorts,
		})
	}
	return out
}
