// SPDX-License-Identifier: Apache-2.0

package route

import (
	"net/http"
	"net/textproto"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
)

// Operation is the operation of a HeaderChange.
type Operation uint8

const (
	// Set replaces all values of the header.
	Set Operation = iota
	// Add appends a value.
	Add
	// Remove removes the header.
	Remove
)

// HeaderChange is a change of a header. Values may contain Envoy's format commands, such as
// %DOWNSTREAM_REMOTE_ADDRESS%, which are not replaced here.
type HeaderChange struct {
	Operation   Operation
	Name, Value string // the name is in canonical form
}

// Apply applies changes in order.
func Apply(changes []HeaderChange, h http.Header) {
	for _, c := range changes {
		switch c.Operation {
		case Set:
			h[c.Name] = []string{c.Value}
		case Add:
			h[c.Name] = append(h[c.Name], c.Value)
		default:
			delete(h, c.Name)
		}
	}
}

// headerChanges returns the changes of one level, in Envoy's order: first it removes headers, and
// then it adds some.
func headerChanges(add []*core.HeaderValueOption, remove []string) []HeaderChange {
	if len(add)+len(remove) == 0 {
		return nil
	}
	out := make([]HeaderChange, 0, len(add)+len(remove))
	for _, name := range remove {
		out = append(out, HeaderChange{Operation: Remove, Name: textproto.CanonicalMIMEHeaderKey(name)})
	}
	for _, o := range add {
		op := Add
		if o.GetAppendAction() == core.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD {
			op = Set
		}
		out = append(out, HeaderChange{op, textproto.CanonicalMIMEHeaderKey(o.GetHeader().GetKey()), o.GetHeader().GetValue()})
	}
	return out
}
