// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/resource"
)

// ResourceState is one state of a resource that a provider keeps: see Answer.State. It
// is immutable.
type ResourceState struct{ resource resource.State }

// NewResourceState returns a state of a resource, of the type of the message, that is
// valid (ValidateAll) and encoded; otherwise the error says what is wrong, and the
// provider keeps the state that it has. The name has to be the one in the message, if
// that has one. The message is not kept.
func NewResourceState(name string, message proto.Message) (*ResourceState, error) {
	if message == nil {
		return nil, fmt.Errorf("resource %q: %w", name, resource.ErrNoMessage)
	}
	out := &ResourceState{resource: resource.State{TypeURL: resource.TypeURLOf(message), Name: name, Build: func() (proto.Message, error) {
		return message, errors.Join(resource.CheckName(name, message), resource.Validate(message))
	}}}
	if out.resource.Exists(); out.resource.Err != nil {
		return nil, out.resource.Err // it names the type and the name
	}
	return out, nil
}

// resourceName is the name of a resource of a type.
type resourceName struct{ typeURL, name string }
