// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"errors"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"
)

// ResourceState is one state of a resource that a provider keeps: see Answer.State. It
// is immutable.
type ResourceState struct{ resource resource }

// NewResourceState returns a state of a resource, of the type of the message, that is
// valid (ValidateAll) and encoded; otherwise the error says what is wrong, and the
// provider keeps the state that it has. The name has to be the one in the message, if
// that has one. The message is not kept.
func NewResourceState(name string, message proto.Message) (*ResourceState, error) {
	if message == nil {
		return nil, fmt.Errorf("resource %q: %w", name, errNoMessage)
	}
	out := &ResourceState{resource: resource{typeURL: typeURLOf(message), name: name, build: func() (proto.Message, error) {
		return message, errors.Join(checkName(name, message), validate(message))
	}}}
	out.resource.once.Do(out.resource.encode)
	if out.resource.err != nil {
		return nil, out.resource.err // it names the type and the name
	}
	return out, nil
}

func typeURLOf(message proto.Message) string {
	return typeURLPrefix + string(message.ProtoReflect().Descriptor().FullName())
}

// typeURLPrefix begins the type URLs that end with the full name of a message, which are
// all of xDS. Protocols on top of it, such as MCP, have others.
const typeURLPrefix = "type.googleapis.com/"

// namesMessage reports whether a type URL names the type of its messages. If not, each is
// sent with a type URL of its own.
func namesMessage(typeURL string) bool { return strings.HasPrefix(typeURL, typeURLPrefix) }

// checkType checks that a message is of the type under which it is served: clients take it
// for one, and find other fields in the bytes of another.
func checkType(typeURL string, message proto.Message) error {
	want, ok := strings.CutPrefix(typeURL, typeURLPrefix)
	if is := message.ProtoReflect().Descriptor().FullName(); ok && string(is) != want {
		return fmt.Errorf("%w: it is a %s, and the type URL is that of a %s", errOtherType, is, want)
	}
	return nil
}

var errOtherType = errors.New("the message is of another type")

var errNoMessage = errors.New("the message is nil")

// checkName checks the name of a resource, which is in the message, too: SotW clients know
// it by that one only.
func checkName(name string, message proto.Message) error {
	inside := name
	switch m := message.(type) {
	case interface{ GetClusterName() string }:
		inside = m.GetClusterName()
	case interface{ GetName() string }:
		inside = m.GetName()
	}
	switch {
	case name == "":
		return errNoName
	case inside != name:
		return fmt.Errorf("the name in the message is %q", inside)
	}
	return nil
}
