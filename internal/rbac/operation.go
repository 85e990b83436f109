// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"fmt"
	"strconv"
	"strings"

	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	matcher "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	security "istio.io/api/security/v1beta1"
)

// operationFields are the fields of the operation of a rule, at a place in it.
func (t *translation) operationFields(at string, o *security.Operation) []field[*rbacv3.Permission] {
	f := func(name string, values, not []string, match func(string) (*rbacv3.Permission, error)) field[*rbacv3.Permission] {
		return field[*rbacv3.Permission]{
			at: at + "." + name, notAt: at + ".not" + strings.ToUpper(name[:1]) + name[1:], values: values, not: not,
			match: each(match), http: true,
		}
	}
	ports := f("ports", o.GetPorts(), o.GetNotPorts(), t.form.port)
	ports.http = false
	paths := f("paths", o.GetPaths(), o.GetNotPaths(), t.form.path)
	if !t.form.grpc() { // what servers are sent in the place of templates matches every path that one is for
		paths.wide = each(widePath)
	}
	return []field[*rbacv3.Permission]{
		f("hosts", o.GetHosts(), o.GetNotHosts(), t.form.host),
		f("methods", o.GetMethods(), o.GetNotMethods(), t.form.method),
		paths,
		ports,
	}
}

// host matches the whole authority of a request, with its port (S49).
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
		return nil, fmt.Errorf("%q is no port", value)
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

func serverName(value string) (*rbacv3.Permission, error) {
	return &rbacv3.Permission{Rule: &rbacv3.Permission_RequestedServerName{RequestedServerName: text(value)}}, nil
}
