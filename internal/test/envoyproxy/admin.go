// SPDX-License-Identifier: Apache-2.0

package envoyproxy

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	admin "github.com/envoyproxy/go-control-plane/envoy/admin/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// ReadAdmin reads an administration page.
func (p *Proxy) ReadAdmin(ctx context.Context, page string) (status int, body []byte, err error) {
	return p.call(ctx, http.MethodGet, page)
}

func (p *Proxy) call(ctx context.Context, method, page string) (status int, body []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, method, p.admin+page, http.NoBody)
	if err != nil {
		return 0, nil, err
	}
	res, err := p.client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	body, err = io.ReadAll(res.Body)
	return res.StatusCode, body, err
}

// Admin returns an administration page that answers with 200.
func (p *Proxy) Admin(page string) []byte {
	p.tb.Helper()
	return p.ok(http.MethodGet, page)
}

// Post asks for a change, such as "/drain_listeners".
func (p *Proxy) Post(page string) {
	p.tb.Helper()
	p.ok(http.MethodPost, page)
}

func (p *Proxy) ok(method, page string) []byte {
	p.tb.Helper()
	status, body, err := p.call(p.tb.Context(), method, page)
	if err != nil {
		p.tb.Fatal(err)
	}
	if status != http.StatusOK {
		p.tb.Fatalf("%s: status %d: %s", page, status, body)
	}
	return body
}

// read decodes a page.
func (p *Proxy) read(page string, m proto.Message) {
	p.tb.Helper()
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(p.Admin(page), m); err != nil {
		p.tb.Fatalf("%s: %v", page, err)
	}
}

// Ready reports whether the Envoy serves.
func (p *Proxy) Ready() bool {
	status, _, err := p.ReadAdmin(p.tb.Context(), "/ready")
	return err == nil && status == http.StatusOK
}

// Stats returns the counters and gauges in use, by name. filter is a regular expression; "" selects
// all.
func (p *Proxy) Stats(filter string) map[string]int {
	p.tb.Helper()
	out := make(map[string]int)
	for line := range strings.Lines(string(p.Admin("/stats?usedonly&filter=" + url.QueryEscape(filter)))) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		if n, err := strconv.Atoi(value); err == nil { // else it is a histogram or a text
			out[name] = n
		}
	}
	return out
}

// Refused returns how often the Envoy refused responses or resources, by the name of
// the counter, such as "listener_manager.lds.update_rejected". It is empty if nothing
// was refused.
func (p *Proxy) Refused() map[string]int {
	p.tb.Helper()
	return p.positive(`rejected$`)
}

// Outmoded returns how often the Envoy was sent deprecated or unknown fields, by the
// name of the counter, and by what its log says of deprecated ones, which is not
// repeated for each time. It is empty if it was sent none.
func (p *Proxy) Outmoded() map[string]int {
	p.tb.Helper()
	out := p.positive(`^(runtime\.deprecated_feature_use|server\.(static|dynamic)_unknown_fields|server\.wip_protos)$`)
	for line := range strings.Lines(string(p.Log())) {
		if _, field, found := strings.Cut(line, "Using deprecated "); found {
			field, _, _ = strings.Cut(field, " from file")
			out[field]++
		}
	}
	return out
}

func (p *Proxy) positive(filter string) map[string]int {
	p.tb.Helper()
	out := p.Stats(filter)
	for name, n := range out {
		if n == 0 {
			delete(out, name)
		}
	}
	return out
}

// Resources returns the messages in a field of the config dump, for example
// admin.ClustersConfigDump_DynamicCluster for "dynamic_active_clusters".
func (p *Proxy) Resources(field string) []proto.Message {
	p.tb.Helper()
	var out []proto.Message
	for _, data := range p.dump(field) {
		packed := &anypb.Any{}
		if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(data, packed); err != nil {
			p.tb.Fatalf("config dump of %s: %v: %s", field, err, data)
		}
		m, err := packed.UnmarshalNew()
		if err != nil {
			p.tb.Fatalf("config dump of %s: %v", field, err)
		}
		out = append(out, m)
	}
	return out
}

// dump returns the JSON values in a field of the config dump.
func (p *Proxy) dump(field string) []json.RawMessage {
	p.tb.Helper()
	status, body, err := p.ReadAdmin(p.tb.Context(), "/config_dump?resource="+url.QueryEscape(field))
	if err != nil {
		p.tb.Fatal(err)
	}
	if status == http.StatusNotFound {
		return nil // The Envoy has none.
	}
	var dump struct {
		Configs []json.RawMessage `json:"configs"`
	}
	if err := json.Unmarshal(body, &dump); status != http.StatusOK || err != nil {
		p.tb.Fatalf("config dump of %s: status %d, %v: %s", field, status, err, body)
	}
	return dump.Configs
}

// Listeners returns where the Envoy listens, by the name of the listener.
func (p *Proxy) Listeners() map[string]string {
	p.tb.Helper()
	m := &admin.Listeners{}
	p.read("/listeners?format=json", m)
	out := make(map[string]string)
	for _, l := range m.GetListenerStatuses() {
		a := l.GetLocalAddress()
		if s := a.GetSocketAddress(); s != nil {
			out[l.GetName()] = joinAddress(s.GetAddress(), s.GetPortValue())
		} else {
			out[l.GetName()] = a.GetPipe().GetPath()
		}
	}
	return out
}

// Clusters returns the active clusters with their endpoints, by name.
func (p *Proxy) Clusters() map[string]*admin.ClusterStatus {
	p.tb.Helper()
	m := &admin.Clusters{}
	p.read("/clusters?format=json", m)
	out := make(map[string]*admin.ClusterStatus)
	for _, c := range m.GetClusterStatuses() {
		out[c.GetName()] = c
	}
	return out
}

// Certificates returns the certificates in use.
func (p *Proxy) Certificates() []*admin.Certificate {
	p.tb.Helper()
	m := &admin.Certificates{}
	p.read("/certs", m)
	return m.GetCertificates()
}

// Unready returns the targets that the Envoy waits for, by component.
func (p *Proxy) Unready() map[string][]string {
	p.tb.Helper()
	m := &admin.UnreadyTargetsDumps{}
	p.read("/init_dump", m)
	out := make(map[string][]string)
	for _, d := range m.GetUnreadyTargetsDumps() {
		out[d.GetName()] = d.GetTargetNames()
	}
	return out
}
