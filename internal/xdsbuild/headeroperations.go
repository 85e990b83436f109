// SPDX-License-Identifier: Apache-2.0

package xdsbuild

import (
	"maps"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	networking "istio.io/api/networking/v1alpha3"
)

// Envoy's limits of header operations. It rejects a resource that exceeds them.
const (
	maxHeaderOperations = 1000
	maxHeaderBytes      = 16384
)

// headerOperations are the operations on the headers of a request and its response.
type headerOperations struct {
	requestAdd, responseAdd       []*corev3.HeaderValueOption
	requestRemove, responseRemove []string
	// authority replaces the authority of the request; empty keeps it.
	authority string
}

func operationsOf(h *networking.Headers) headerOperations {
	var out headerOperations
	request, response := h.GetRequest(), h.GetResponse()
	set, setAuthority := headerValues(request.GetSet(), corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD)
	added, addedAuthority := headerValues(request.GetAdd(), corev3.HeaderValueOption_APPEND_IF_EXISTS_OR_ADD)
	out.requestAdd = append(set, added...)
	if out.authority = setAuthority; out.authority == "" {
		out.authority = addedAuthority
	}
	set, _ = headerValues(response.GetSet(), corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD)
	added, _ = headerValues(response.GetAdd(), corev3.HeaderValueOption_APPEND_IF_EXISTS_OR_ADD)
	out.responseAdd = append(set, added...)
	out.requestRemove = removable(request.GetRemove())
	out.responseRemove = removable(response.GetRemove())
	return out
}

// headerValues returns the operations sorted by name, except a replacement of the request's
// authority, because Envoy changes the authority by rewriting the host.
func headerValues(values map[string]string, action corev3.HeaderValueOption_HeaderAppendAction) (out []*corev3.HeaderValueOption, authority string) {
	if len(values) == 0 {
		return nil, ""
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		switch value := values[name]; {
		case isAuthority(name):
			authority = value
		case changeable(name) && len(value) <= maxHeaderBytes:
			out = append(out, &corev3.HeaderValueOption{
				Header: &corev3.HeaderValue{Key: name, Value: value}, AppendAction: action,
			})
		}
	}
	return out, authority
}

func removable(names []string) []string {
	var out []string
	for _, name := range names {
		if changeable(name) && !isAuthority(name) {
			out = append(out, name)
		}
	}
	return out
}

func isAuthority(name string) bool {
	return strings.EqualFold(name, authorityHeader) || strings.EqualFold(name, "host")
}

// changeable reports whether Envoy allows routes to change a header.
func changeable(name string) bool {
	return name != "" && name[0] != ':' && len(name) <= maxHeaderBytes
}

// applyHeaders adds operations to a route. It returns the replacement of the authority.
func applyHeaders(out *routev3.Route, h *networking.Headers) (authority string) {
	if h == nil {
		return ""
	}
	o := operationsOf(h)
	out.RequestHeadersToAdd = bounded(append(out.RequestHeadersToAdd, o.requestAdd...))
	out.ResponseHeadersToAdd = bounded(append(out.ResponseHeadersToAdd, o.responseAdd...))
	out.RequestHeadersToRemove = append(out.RequestHeadersToRemove, o.requestRemove...)
	out.ResponseHeadersToRemove = append(out.ResponseHeadersToRemove, o.responseRemove...)
	return o.authority
}

func bounded(ops []*corev3.HeaderValueOption) []*corev3.HeaderValueOption {
	return ops[:min(len(ops), maxHeaderOperations)]
}
