// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	httprbac "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tcprbac "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/rbac/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// chain is a filter chain of a listener that leads requests to a route configuration.
type chain struct {
	routes string
	// content is a hash of all fields except the name and the match; demands are the requirements
	// of the chain, shared by chains of equal content.
	content uint64
	*demands
}

// demands are the requirements of a filter chain for requests and connections, as hashes.
type demands struct {
	// restrictions are the filters, and the rules of filters, that may reject requests; permissions
	// are the rules without which a filter would reject more.
	restrictions, permissions Hashes
}

// exceed reports whether d may reject requests that others do not reject. A difference whose
// direction is not known counts.
func (d *demands) exceed(others *demands) bool {
	return d.restrictions.Exceed(others.restrictions) || others.permissions.Exceed(d.permissions)
}

// Tightened returns the route configurations, in unspecified order, that are behind a filter chain
// of the next state which may reject more requests than the chain of s that it replaces. A route
// configuration that s does not reference is never among them.
func (s *Set) Tightened(next *Set) (routes []string) {
	for rest := s.chains; len(rest) > 0; {
		name := rest[0].routes
		old := s.chainsTo(name)
		if tightened(old, next.chainsTo(name)) {
			routes = append(routes, name)
		}
		rest = rest[len(old):]
	}
	return routes
}

// chainsTo returns the chains that lead to a route configuration.
func (s *Set) chainsTo(routes string) []chain {
	first, _ := slices.BinarySearchFunc(s.chains, routes, func(c chain, routes string) int { return strings.Compare(c.routes, routes) })
	last := first
	for last < len(s.chains) && s.chains[last].routes == routes {
		last++
	}
	return s.chains[first:last]
}

// tightened reports whether removed chains may reject less than added ones. Both lists are sorted
// by content.
func tightened(old, now []chain) bool {
	gone, come := lacking(old, now), lacking(now, old)
	return len(gone) > 0 && len(come) == 0 || slices.ContainsFunc(gone, func(g chain) bool {
		return slices.ContainsFunc(come, func(c chain) bool { return c.exceed(g.demands) })
	})
}

// lacking returns the chains of a that are missing in b, each as often as a has more of them.
func lacking(a, b []chain) (out []chain) {
	for _, c := range a {
		for len(b) > 0 && b[0].content < c.content {
			b = b[1:]
		}
		if len(b) > 0 && b[0].content == c.content {
			b = b[1:]
		} else {
			out = append(out, c)
		}
	}
	return out
}

// Field numbers and type names of the messages that may have demands.
//
//nolint:gochecknoglobals // never changed
var (
	chainFields  = numbersOf(&listenerv3.FilterChain{}, "filter_chain_match", "name", "filters")
	filterConfig = numbersOf(&listenerv3.Filter{}, "typed_config")
	httpFilter   = numbersOf(&hcm.HttpFilter{}, "typed_config")
	managerField = numbersOf(&hcm.HttpConnectionManager{}, "http_filters")
	rulesOf      = numbersOf(&httprbac.RBAC{}, "rules") // also for connections
	rulesFields  = numbersOf(&rbacv3.RBAC{}, "action", "policies")

	managerType = nameOf(&hcm.HttpConnectionManager{})
	rbacTypes   = []string{nameOf(&httprbac.RBAC{}), nameOf(&tcprbac.RBAC{})}
)

// numbersOf returns the numbers of fields. It panics if there is no such field.
func numbersOf(m proto.Message, fields ...string) (out []protowire.Number) {
	for _, f := range fields {
		out = append(out, m.ProtoReflect().Descriptor().Fields().ByTextName(f).Number())
	}
	return out
}

func nameOf(m proto.Message) string { return string(m.ProtoReflect().Descriptor().FullName()) }

// demandsOf returns the demands of a filter chain, and a hash of its content.
func (f *finder) demandsOf(encoded []byte) (content uint64, found *demands) {
	var all xxhash.Digest
	all.Reset()
	var filters [][]byte
	others := xxhash.New()
	EachField(encoded, func(number protowire.Number, field, value []byte) {
		switch number {
		case chainFields[0], chainFields[1]:
			return
		case chainFields[2]:
			filters = append(filters, value)
		default:
			_, _ = others.Write(field)
		}
		_, _ = all.Write(field)
	})
	content = all.Sum64()
	if found = f.demands[content]; found != nil {
		return content, found
	}
	found = &demands{restrictions: Hashes{others.Sum64()}}
	for _, filter := range filters {
		found.filter(filter)
	}
	found.restrictions, found.permissions = NewHashes(found.restrictions), NewHashes(found.permissions)
	if f.demands == nil {
		f.demands = make(map[uint64]*demands)
	}
	f.demands[content] = found
	return content, found
}

// filter adds a network filter.
func (d *demands) filter(encoded []byte) {
	typed, manager := typedConfig(encoded, filterConfig[0])
	if typed != managerType {
		d.add(encoded, filterConfig[0])
		return
	}
	rest := xxhash.New()
	EachField(manager, func(number protowire.Number, field, value []byte) {
		if number == managerField[0] {
			d.add(value, httpFilter[0])
		} else {
			_, _ = rest.Write(field)
		}
	})
	d.restrictions = append(d.restrictions, rest.Sum64())
}

// add adds a filter whose configuration is in a field, rule by rule if it has rules.
func (d *demands) add(encoded []byte, config protowire.Number) {
	typed, value := typedConfig(encoded, config)
	if !slices.Contains(rbacTypes, typed) {
		d.restrictions = append(d.restrictions, xxhash.Sum64(encoded))
		return
	}
	rest := xxhash.New()
	EachField(encoded, func(number protowire.Number, field, _ []byte) {
		if number != config {
			_, _ = rest.Write(field) // its name, which distinguishes filters
		}
	})
	EachField(value, func(number protowire.Number, field, rules []byte) {
		if number == rulesOf[0] {
			d.rules(typed, rules)
		} else {
			_, _ = rest.Write(field)
		}
	})
	d.restrictions = append(d.restrictions, rest.Sum64())
}

// rules adds each rule of an RBAC filter.
func (d *demands) rules(typed string, encoded []byte) {
	action := rbacv3.RBAC_ALLOW
	var policies []uint64
	rest := xxhash.New()
	_, _ = rest.WriteString(typed)
	EachField(encoded, func(number protowire.Number, field, _ []byte) {
		switch number {
		case rulesFields[0]:
			_, _, n := protowire.ConsumeTag(field)
			value, _ := protowire.ConsumeVarint(field[n:])
			action = rbacv3.RBAC_Action(value) //nolint:gosec // encoded by this server
			_, _ = rest.Write(field)
		case rulesFields[1]:
			policies = append(policies, xxhash.Sum64String(typed)^xxhash.Sum64(field))
		default:
			_, _ = rest.Write(field)
		}
	})
	d.restrictions = append(d.restrictions, rest.Sum64())
	switch action {
	case rbacv3.RBAC_ALLOW:
		d.permissions = append(d.permissions, policies...)
	case rbacv3.RBAC_DENY:
		d.restrictions = append(d.restrictions, policies...)
	default: // LOG rejects no request
	}
}

// typedConfig returns the type and the value of an Any in a field of a message; typed is "" if
// there is none.
func typedConfig(message []byte, number protowire.Number) (typed string, value []byte) {
	EachField(message, func(n protowire.Number, _, packed []byte) {
		if n == number {
			typed, value = unpacked(packed)
		}
	})
	return typed, value
}

// unpacked returns the name of the type and the value of an encoded Any.
func unpacked(packed []byte) (typed string, value []byte) {
	const typeField, valueField = 1, 2
	EachField(packed, func(n protowire.Number, _, content []byte) {
		if n == typeField {
			typed = typeName(string(content))
		}
		if n == valueField {
			value = content
		}
	})
	return typed, value
}

// EachField calls visit with each field of an encoded message, and with its value if it has a length. It reports false
// at a field that cannot be decoded, which does not occur in messages that this server has encoded.
func EachField(message []byte, visit func(number protowire.Number, field, value []byte)) (ok bool) {
	for len(message) > 0 {
		number, kind, tag := protowire.ConsumeTag(message)
		if tag < 0 {
			return false
		}
		var value []byte
		size := 0
		if kind == protowire.BytesType {
			value, size = protowire.ConsumeBytes(message[tag:])
		} else {
			size = protowire.ConsumeFieldValue(number, kind, message[tag:])
		}
		if size < 0 {
			return false
		}
		visit(number, message[:tag+size], value)
		message = message[tag+size:]
	}
	return true
}
