// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"slices"

	"github.com/cespare/xxhash/v2"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	httprbac "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tcprbac "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/rbac/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// demands are the requirements of a filter chain for requests and connections, as hashes.
type demands struct {
	// content is a hash of all fields of the chain except the name and the match.
	content uint64
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
	for name, old := range s.chains {
		if tightened(old, next.chains[name]) {
			routes = append(routes, name)
		}
	}
	return routes
}

// tightened reports whether removed chains may reject less than added ones. Both lists are sorted
// by content.
func tightened(old, now []*demands) bool {
	gone, come := lacking(old, now), lacking(now, old)
	return len(gone) > 0 && len(come) == 0 || slices.ContainsFunc(gone, func(g *demands) bool {
		return slices.ContainsFunc(come, func(c *demands) bool { return c.exceed(g) })
	})
}

// lacking returns the chains of a that are missing in b, each as often as a has more of them.
func lacking(a, b []*demands) (out []*demands) {
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

// The numbers of fields of messages that may have demands; typedConfig is that of filters of connections and of
// requests.
const (
	matchField, filtersField, nameField = 1, 3, 7 // FilterChain
	typedConfig                         = 4
	httpFiltersField                    = 5    // HttpConnectionManager
	rulesField                          = 1    // RBAC filters
	actionField, policiesField          = 1, 2 // RBAC rules
)

//nolint:gochecknoglobals // never changed
var (
	managerType = nameOf(&hcm.HttpConnectionManager{})
	rbacTypes   = []string{nameOf(&httprbac.RBAC{}), nameOf(&tcprbac.RBAC{})}
)

func nameOf(m proto.Message) string { return string(m.ProtoReflect().Descriptor().FullName()) }

// demandsOf returns the demands of a filter chain.
func (f *finder) demandsOf(encoded []byte) *demands {
	isLabel := func(number protowire.Number) bool { return number == matchField || number == nameField }
	content := split(encoded, func(number protowire.Number, _, _ []byte) bool { return isLabel(number) })
	found := f.demands[content]
	if found != nil {
		return found
	}
	found = &demands{content: content}
	found.restrict(encoded, func(number protowire.Number, _, filter []byte) bool {
		if number == filtersField {
			found.filter(filter)
		}
		return number == filtersField || isLabel(number)
	})
	found.restrictions, found.permissions = NewHashes(found.restrictions), NewHashes(found.permissions)
	f.demands[content] = found
	return found
}

// split calls takes with each field of an encoded message, and returns a hash of the fields that it does not take.
func split(message []byte, takes func(number protowire.Number, field, value []byte) bool) (rest uint64) {
	hash := xxhash.New()
	EachField(message, func(number protowire.Number, field, value []byte) {
		if !takes(number, field, value) {
			_, _ = hash.Write(field)
		}
	})
	return hash.Sum64()
}

// restrict adds what split returns.
func (d *demands) restrict(message []byte, takes func(number protowire.Number, field, value []byte) bool) {
	rest := split(message, takes) // takes may add restrictions
	d.restrictions = append(d.restrictions, rest)
}

// filter adds a filter of connections or requests, rule by rule if it has rules.
func (d *demands) filter(encoded []byte) {
	d.restrict(encoded, func(number protowire.Number, _, packed []byte) bool {
		if number != typedConfig {
			return false
		}
		typed, config := unpacked(packed)
		switch {
		case typed == managerType:
			d.restrict(config, func(number protowire.Number, _, filter []byte) bool {
				if number == httpFiltersField {
					d.filter(filter)
				}
				return number == httpFiltersField
			})
		case slices.Contains(rbacTypes, typed):
			d.restrict(config, func(number protowire.Number, _, rules []byte) bool {
				if number == rulesField {
					d.rules(typed, rules)
				}
				return number == rulesField
			})
		default:
			return false
		}
		return true
	})
}

// rules adds each rule of an RBAC filter.
func (d *demands) rules(typed string, encoded []byte) {
	action := rbacv3.RBAC_ALLOW
	var policies []uint64
	d.restrict(encoded, func(number protowire.Number, field, _ []byte) bool {
		switch number { //nolint:exhaustive // the other fields reject no request
		case actionField:
			action = rbacv3.RBAC_Action(varint(field)) //nolint:gosec // encoded by this server
		case policiesField:
			policies = append(policies, xxhash.Sum64String(typed)^xxhash.Sum64(field))
		}
		return number == policiesField
	})
	switch action {
	case rbacv3.RBAC_ALLOW:
		d.permissions = append(d.permissions, policies...)
	case rbacv3.RBAC_DENY:
		d.restrictions = append(d.restrictions, policies...)
	default: // LOG rejects no request
	}
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

// varint returns the value of an encoded field that is a number.
func varint(field []byte) uint64 {
	_, _, tag := protowire.ConsumeTag(field)
	value, _ := protowire.ConsumeVarint(field[tag:])
	return value
}
