// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"errors"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"
)

// TypeURLOf returns the type URL of a message in xDS.
func TypeURLOf(message proto.Message) string {
	return typeURLPrefix + string(message.ProtoReflect().Descriptor().FullName())
}

// typeURLPrefix begins the type URLs that end with the full name of a message, as all type URLs of
// xDS do. Protocols on top of it, such as MCP, have others.
const typeURLPrefix = "type.googleapis.com/"

// NamesMessage reports whether a type URL names the type of its messages. If it does not, each
// message is sent with a type URL of its own.
func NamesMessage(typeURL string) bool { return strings.HasPrefix(typeURL, typeURLPrefix) }

// checkType checks that a message has the type of its type URL: clients decode it as that type, and
// would find other fields in the bytes of another type.
func checkType(typeURL string, message proto.Message) error {
	want, ok := strings.CutPrefix(typeURL, typeURLPrefix)
	if is := message.ProtoReflect().Descriptor().FullName(); ok && string(is) != want {
		return fmt.Errorf("%w: it is a %s, and the type URL is that of a %s", errOtherType, is, want)
	}
	return nil
}

var errOtherType = errors.New("the message is of another type")

var (
	// ErrNoMessage means that a message is nil.
	ErrNoMessage = errors.New("the message is nil")
	// ErrNoName means that the name or the type of a resource is empty.
	ErrNoName = errors.New("a resource without a name, or without a type")
)

// CheckName checks that the name of a resource is the name in the message, because SotW clients
// know only the latter.
func CheckName(name string, message proto.Message) error {
	inside := name
	switch m := message.(type) {
	case interface{ GetClusterName() string }:
		inside = m.GetClusterName()
	case interface{ GetName() string }:
		inside = m.GetName()
	}
	switch {
	case name == "":
		return ErrNoName
	case inside != name:
		return fmt.Errorf("the name in the message is %q", inside)
	}
	return nil
}

// Valid checks that a message of the program has the type of a type URL, and is valid by the rules
// of its API.
func Valid(typeURL string, m proto.Message) error {
	if err := checkType(typeURL, m); err != nil {
		return err
	}
	return Validate(m)
}

// Validate checks a message of the program by the rules of its API.
func Validate(m proto.Message) error {
	if v, ok := m.(interface{ ValidateAll() error }); ok {
		return v.ValidateAll()
	}
	return nil
}
