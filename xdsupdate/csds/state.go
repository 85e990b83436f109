// SPDX-License-Identifier: Apache-2.0

package csds

import (
	"errors"
	"time"

	admin "github.com/envoyproxy/go-control-plane/envoy/admin/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/pilotkit/pilotkit/xdsupdate/ads"
)

// pack returns a state without its secrets, nil if there is none or if its content is unknown.
func pack(s ads.StateOfResource) (*anypb.Any, error) {
	m, err := s.Message()
	if errors.Is(err, ads.ErrNoState) {
		return nil, nil //nolint:nilnil // As the comment says.
	}
	if err != nil {
		return nil, err
	}
	packed := &anypb.Any{}
	return packed, anypb.MarshalFrom(packed, m, proto.MarshalOptions{Deterministic: true})
}

// errorState returns the error of the proxy's NACK without the rejected state, nil if the proxy
// does not reject the resource.
func errorState(r ads.ProxyResource) *admin.UpdateFailureState {
	if r.Error == "" && r.Status != ads.StatusError {
		return nil
	}
	return &admin.UpdateFailureState{LastUpdateAttempt: timestamp(r.Since), Details: r.Error, VersionInfo: r.Sent.Version()}
}

// timestamp converts a time. It returns nil for the zero time.
func timestamp(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}
