// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"fmt"
	"strconv"

	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	matcher "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	security "istio.io/api/security/v1beta1"
)

// operation adds the fields of the operation of a rule.
func (t *translation) operation(d *demands[*rbacv3.Permission], o *security.Operation) {
	type how = matching[*rbacv3.Permission]
	d.field("hosts", o.GetHosts(), o.GetNotHosts(), how{match: each(t.form.host), http: true})
	d.field("methods", o.GetMethods(), o.GetNotMethods(), how{match: each(t.form.method), http: true})
	paths := how{match: each(t.form.path), http: true}
	if !t.form.grpc() { // the expression for servers matches every path of the template
		paths.wide = each(widePath)
	}
	d.field("paths", o.GetPaths(), o.GetNotPaths(), paths)
	d.field("ports", o.GetPorts(), o.GetNotPorts(), how{match: each(t.form.port)})
}

// host matches the whole authority of a request, including its port (S49).
func (form Form) host(value string) (*rbacv3.Permission, error) {
	return &rbacv3.Permission{Rule: &rbacv3.Permission_Header{Header: form.header(":authority", value, true)}}, nil
}

func (form Form) method(value string) (*rbacv3.Permission, error) {
	return &rbacv3.Permission{Rule: &rbacv3.Permission_Header{Header: form.header(":method", value, false)}}, nil
}

// path matches the path of a request without its query (S50).
func (form Form) path(value string) (*rbacv3.Permission, error) {
	if form.grpc() && isTemplate(value) {
		return urlPath(grpcTemplate(value)), nil
	}
	return path(value)
}

func path(value string) (*rbacv3.Permission, error) {
	if isTemplate(value) {
		return pathTemplate(value)
	}
	return urlPath(text(value)), nil
}

func urlPath(m *matcher.StringMatcher) *rbacv3.Permission {
	return &rbacv3.Permission{Rule: &rbacv3.Permission_UrlPath{UrlPath: &matcher.PathMatcher{Rule: &matcher.PathMatcher_Path{Path: m}}}}
}

// port matches the port of the connection at the proxy.
func (form Form) port(value string) (*rbacv3.Permission, error) {
	n, err := strconv.ParseUint(value, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("%q is not a port", value)
	}
	if form == GRPCNode {
		return nil, errUnconnected
	}
	return &rbacv3.Permission{Rule: &rbacv3.Permission_DestinationPort{DestinationPort: uint32(n)}}, nil
}

// destination matches the address of the connection at the proxy.
func (form Form) destination(value string) (*rbacv3.Permission, error) {
	r, err := form.addresses(value)
	return &rbacv3.Permission{Rule: &rbacv3.Permission_DestinationIp{DestinationIp: r}}, err
}

// serverName matches the server name of the connection, which is empty for servers (S15).
func (form Form) serverName(value string) (*rbacv3.Permission, error) {
	if form.grpc() {
		if value == "" {
			return permissions().everything(), nil
		}
		return permissions().nothing(), nil
	}
	return &rbacv3.Permission{Rule: &rbacv3.Permission_RequestedServerName{RequestedServerName: text(value)}}, nil
}
