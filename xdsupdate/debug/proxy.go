// SPDX-License-Identifier: Apache-2.0

package debug

import (
	"slices"
	"time"

	"github.com/pilotkit/pilotkit/xdsupdate/ads"
)

// proxyPage is the content of the page of one stream of a proxy.
type proxyPage struct {
	proxyRow
	// View describes the view of the proxy.
	View  string    `json:"view"`
	State []typeRow `json:"state"`
	// Faults are the resources that the proxy rejects, or that cannot be built.
	Faults []faultRow `json:"faults,omitempty"`
	// List has the resources of the proxy.
	List list[resourceRow] `json:"resources"`
}

// typeRow is the state of a type on the stream.
type typeRow struct {
	TypeURL    string `json:"type_url"`
	Wildcard   bool   `json:"wildcard"`
	Names      int    `json:"names"`
	Sent       string `json:"sent,omitempty"`
	Acked      string `json:"acked,omitempty"`
	Pending    bool   `json:"pending,omitempty"`
	Overdue    bool   `json:"overdue,omitempty"`
	Rejections int    `json:"rejections,omitempty"`
}

// resourceRow is a resource of a proxy.
type resourceRow struct {
	TypeURL string             `json:"type_url"`
	Name    string             `json:"name"`
	Status  ads.ResourceStatus `json:"status"`
	// Sent and Accepted are versions. Made is the time when the server built the sent version.
	Sent     string     `json:"sent,omitempty"`
	Accepted string     `json:"accepted,omitempty"`
	Made     time.Time  `json:"made,omitzero"`
	Since    time.Time  `json:"since,omitzero"`
	Pending  bool       `json:"pending,omitempty"`
	Error    string     `json:"error,omitempty"`
	LeftOut  []faultRow `json:"left_out,omitempty"`
}

func (h *handler) proxy(q *query) (any, error) {
	status, resources, err := h.streamOf(q)
	if err != nil {
		return nil, err
	}
	ofStream := slices.DeleteFunc(h.faults(), func(f ads.Fault) bool { return f.Stream != status.Stream })
	out := &proxyPage{proxyRow: proxyRowOf(status, ofStream), View: status.View.String()}
	for _, f := range ofStream[:min(len(ofStream), maxLimit)] {
		out.Faults = append(out.Faults, faultRowOf(f))
	}
	for _, typeURL := range sortedTypes(status.Types) {
		t := status.Types[typeURL]
		out.State = append(out.State, typeRow{
			typeURL, t.Wildcard, t.Names, t.Sent, t.Acked, t.Pending, t.Overdue, t.Rejections,
		})
	}
	out.List, err = listOf(q, resources.Resources, func(r ads.ProxyResource) bool {
		return (!q.is("type") || r.TypeURL == q.text("type") || typeName(r.TypeURL) == q.text("type")) &&
			(!q.is("status") || string(r.Status) == q.text("status")) && contains(q.text("q"), r.Name)
	}, resourceRowOf)
	return out, err
}

func resourceRowOf(r ads.ProxyResource) resourceRow {
	row := resourceRow{
		TypeURL: r.TypeURL, Name: r.Name, Status: r.Status, Sent: r.Sent.Version(), Accepted: r.Accepted.Version(), Made: r.Sent.Made(),
		Since: r.Since, Pending: r.Pending, Error: redactText(r.Error),
	}
	for _, f := range r.LeftOut {
		row.LeftOut = append(row.LeftOut, faultRowOf(f))
	}
	return row
}

// streamOf returns the stream that a request names by its number, or the newest stream of the proxy
// that it names by ID.
func (h *handler) streamOf(q *query) (ads.ProxyStatus, ads.ProxyResources, error) {
	id, stream := q.values.Get("id"), q.text("stream")
	var found *ads.ProxyStatus
	for _, p := range h.Server.Proxies() {
		if (id == "" || p.ID == id) && (stream == "" || stream == number(p.Stream)) && (id != "" || stream != "") {
			found = &p
		}
	}
	if found == nil {
		return ads.ProxyStatus{}, ads.ProxyResources{}, notFound("no proxy %q is connected by the stream %q", id, stream)
	}
	var resources ads.ProxyResources
	for r := range h.Server.Resources(func(s ads.Stream) bool { return s.ID == found.Stream }) {
		resources = r
	}
	return *found, resources, nil
}
