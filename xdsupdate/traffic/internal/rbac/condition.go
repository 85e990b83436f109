// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"fmt"
	"slices"
	"strings"

	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	matcher "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	security "istio.io/api/security/v1beta1"
)

// condition adds a condition of a rule to its side.
func (t *translation) condition(source *demands[*rbacv3.Principal], operation *demands[*rbacv3.Permission], c *security.Condition) {
	of, to := t.principalOf(c.GetKey()), t.form.permissionOf(c.GetKey())
	switch {
	case of.match != nil:
		source.field("values", c.GetValues(), c.GetNotValues(), of)
	case to.match != nil:
		operation.field("values", c.GetValues(), c.GetNotValues(), to)
	default:
		source.problem("key", fmt.Errorf("there is no attribute %q", c.GetKey()))
	}
}

// permissionOf returns the matching of an attribute of the operation.
func (form Form) permissionOf(key string) (f matching[*rbacv3.Permission]) {
	switch key {
	case "destination.port":
		f.match = each(form.port)
	case "destination.ip":
		f.match = each(form.destination)
	case "connection.sni":
		f.match = each(serverName)
	default:
		if filter, ok := strings.CutPrefix(key, "experimental."); ok {
			if filter, path, ok := indexed(filter); ok {
				f.match = form.filterMetadata(filter, path)
			}
		}
	}
	return f
}

// principalOf returns the matching of an attribute of the source.
func (t *translation) principalOf(key string) (f matching[*rbacv3.Principal]) {
	switch key {
	case "source.principal":
		f.match = t.identity(t.principals)
	case "source.namespace":
		f.match = t.identity(each(namespace))
	case "source.serviceAccount":
		f.match = t.identity(each(t.serviceAccount))
	case "source.trustDomain":
		f.match = t.identity(t.trustDomains)
	case "source.ip":
		f.match = each(t.form.directAddress)
	case "remote.ip":
		f.match = each(t.form.remoteAddress)
	case "request.auth.principal":
		f.match, f.http = each(t.form.requestPrincipal), true
	case "request.auth.audiences":
		f.match, f.http = t.form.claims("aud"), true
	case "request.auth.presenter":
		f.match, f.http = t.form.claims("azp"), true
	default:
		switch attribute, index, ok := indexed(key); {
		case ok && attribute == "request.headers":
			f.match, f.http = each(t.form.headerOf(index)), true
		case ok && attribute == "request.auth.claims":
			if names := strings.Split(index, "]["); !slices.Contains(names, "") {
				f.match, f.http = t.form.claims(names...), true
			}
		}
	}
	return f
}

// indexed splits a key "ATTRIBUTE[INDEX]".
func indexed(key string) (attribute, index string, ok bool) {
	attribute, index, ok = strings.Cut(key, "[")
	index, closed := strings.CutSuffix(index, "]")
	return attribute, index, ok && closed && index != ""
}

// headerOf matches a request header. The case of its name is ignored (S19).
func (form Form) headerOf(name string) func(value string) (*rbacv3.Principal, error) {
	return func(value string) (*rbacv3.Principal, error) {
		if form.grpc() {
			known, err := grpcHeaderName(name)
			if err != nil {
				return nil, err
			}
			name = known
		}
		return &rbacv3.Principal{Identifier: &rbacv3.Principal_Header{Header: form.header(name, value, false)}}, nil
	}
}

// filterMetadata matches the dynamic metadata of a filter. A value "[TEXT]" is an element of a
// list.
func (form Form) filterMetadata(filter, path string) func(values []string) ([]*rbacv3.Permission, error) {
	return func(values []string) ([]*rbacv3.Permission, error) {
		texts := make([]*matcher.ValueMatcher, 0, len(values))
		for _, v := range values {
			if element, ok := strings.CutPrefix(v, "["); ok && strings.HasSuffix(element, "]") {
				texts = append(texts, listed(textValue(text(strings.TrimSuffix(element, "]")))))
			} else {
				texts = append(texts, textValue(text(v)))
			}
		}
		m := metadata(filter, []string{path}, anyValue(texts...))
		if form.grpc() {
			return []*rbacv3.Permission{grpcMetadata(m)}, nil
		}
		return []*rbacv3.Permission{{Rule: &rbacv3.Permission_SourcedMetadata{SourcedMetadata: ofRequest(m)}}}, nil
	}
}
