// SPDX-License-Identifier: Apache-2.0

package debug

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// call returns the call of the form.
func (q *query) call() (traffic.Call, error) {
	port, err := q.number("port", 80, 65535)
	call := traffic.Call{
		Host: registry.Hostname(q.text("host")), Port: uint32(port), Method: strings.ToUpper(q.text("method")), //nolint:gosec // in range
		Scheme: q.text("scheme"), Path: q.text("path"), Headers: map[string]string{},
		Inbound: q.is("inbound"), Principal: q.text("principal"), ServerName: strings.ToLower(q.text("server_name")), InvalidToken: q.is("invalid_token"),
	}
	if err != nil {
		return call, err
	}
	if err := q.caller(&call); err != nil {
		return call, err
	}
	if call.Path != "" && !strings.HasPrefix(call.Path, "/") {
		return call, badRequest("path: must begin with a slash")
	}
	if call.Scheme != "" && call.Scheme != "http" && call.Scheme != "https" {
		return call, badRequest(`scheme: must be "http" or "https"`)
	}
	for line := range strings.Lines(q.values.Get("headers")) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok || name == "" {
			return call, badRequest("headers: each line must be NAME: VALUE")
		}
		call.Headers[strings.ToLower(strings.TrimSpace(name))] = strings.TrimSpace(value)
	}
	return call, nil
}

// caller sets the fields of the call that describe the caller, from the form.
func (q *query) caller(call *traffic.Call) error {
	if text := q.text("claims"); text != "" {
		if json.Unmarshal([]byte(text), &call.Claims) != nil || call.Claims == nil {
			return badRequest("claims: must be a JSON object")
		}
	}
	for name, into := range map[string]*netip.Addr{"source": &call.Source, "remote": &call.Remote, "destination": &call.Destination} {
		text := q.text(name)
		if text == "" {
			continue
		}
		with, err := netip.ParseAddrPort(text) // policies ignore the caller's port
		if *into = with.Addr(); err != nil {
			if *into, err = netip.ParseAddr(text); err != nil {
				return badRequest("%s: must be an IP address, with a port or without", name)
			}
		}
	}
	return nil
}

// client returns the view that the request selects: the view of a connected proxy, or of a client
// in a namespace. It also returns the selected proxies.
func (h *handler) client(q *query, out *explainPage) (ads.View, []ads.ProxyStatus, error) {
	id := q.text("proxy")
	if id == "" {
		view := ads.View{Namespace: q.text("namespace")}
		out.Client = fmt.Sprintf("a sidecar in the namespace %q", view.Namespace)
		if q.text("client") == "grpc" {
			view.Client, out.Client = envoy.ForGRPC, fmt.Sprintf("a gRPC client in the namespace %q", view.Namespace)
		}
		return view, nil, nil
	}
	if h.Server == nil {
		return ads.View{}, nil, badRequest("proxy: there is no server here that proxies are connected to")
	}
	var found []ads.ProxyStatus
	for _, p := range h.Server.Proxies() {
		if p.ID == id {
			found = append(found, p)
		}
	}
	if len(found) == 0 {
		return ads.View{}, nil, notFound("proxy: %q is not connected", id)
	}
	out.Client = id
	return found[0].View, found, nil
}
