// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	security "istio.io/api/security/v1beta1"
	apitype "istio.io/api/type/v1beta1"

	"github.com/pilotkit/pilotkit/configstore"
)

// The policies of security.istio.io restrict access, so that a missing policy admits traffic. The
// placeholder of an unreadable policy applies to the policy's selection or, if that cannot be read,
// to its whole namespace.

// closing adds how a schema closes (configstore.Schema.Closed).
func closing[T proto.Message](s configstore.Schema, closed func(spec T) T) configstore.Schema {
	s.Closed = func(spec proto.Message) proto.Message {
		read, _ := spec.(T)
		return closed(read)
	}
	return s
}

// closedAuthorizationPolicy allows nothing, if the policy allows something, or else denies everything.
func closedAuthorizationPolicy(spec *security.AuthorizationPolicy) *security.AuthorizationPolicy {
	out := &security.AuthorizationPolicy{}
	out.Selector, out.TargetRef, out.TargetRefs = selection(spec, out)
	if spec == nil || spec.GetAction() != security.AuthorizationPolicy_ALLOW || ActionUnread(configstore.Unread(spec)) {
		out.Action, out.Rules = security.AuthorizationPolicy_DENY, []*security.Rule{{}}
	}
	return out
}

// closedRequestAuthentication has no rules. Its readers refuse all requests.
func closedRequestAuthentication(spec *security.RequestAuthentication) *security.RequestAuthentication {
	out := &security.RequestAuthentication{}
	out.Selector, out.TargetRef, out.TargetRefs = selection(spec, out)
	return out
}

// closedPeerAuthentication takes nothing but mutual TLS.
func closedPeerAuthentication(spec *security.PeerAuthentication) *security.PeerAuthentication {
	out := &security.PeerAuthentication{Mtls: &security.PeerAuthentication_MutualTLS{Mode: security.PeerAuthentication_MutualTLS_STRICT}}
	if spec == nil || SelectionUnread(configstore.Unread(spec)) {
		configstore.MarkUnread(out.ProtoReflect(), selectorField)
	} else {
		out.Selector = spec.GetSelector()
	}
	return out
}

// selecting is implemented by the specs that share the fields of a selection.
type selecting interface {
	proto.Message
	GetSelector() *apitype.WorkloadSelector
	GetTargetRef() *apitype.PolicyTargetReference
	GetTargetRefs() []*apitype.PolicyTargetReference
}

// selection returns the selection of a spec. If it cannot be read, selection records that in out.
func selection[T selecting](spec, out T) (*apitype.WorkloadSelector, *apitype.PolicyTargetReference, []*apitype.PolicyTargetReference) {
	if !spec.ProtoReflect().IsValid() || SelectionUnread(configstore.Unread(spec)) {
		configstore.MarkUnread(out.ProtoReflect(), selectorField)
		return nil, nil, nil
	}
	return spec.GetSelector(), spec.GetTargetRef(), spec.GetTargetRefs()
}

const selectorField = "selector"

// SelectionUnread reports whether one of the unreadable parts of a policy (configstore.Unread)
// belongs to the policy's selection.
func SelectionUnread(unread []configstore.Violation) bool {
	return anyIn(unread, selectorField, "targetRef", "targetRefs")
}

// ActionUnread reports whether one of the parts of an AuthorizationPolicy that cannot be read
// (configstore.Unread) is its action.
func ActionUnread(unread []configstore.Violation) bool { return anyIn(unread, "action") }

// anyIn reports whether one of the parts is in a field of the spec.
func anyIn(unread []configstore.Violation, fields ...string) bool {
	return slices.ContainsFunc(unread, func(u configstore.Violation) bool {
		at := strings.TrimPrefix(u.Field, "spec.")
		if end := strings.IndexAny(at, ".["); end >= 0 {
			at = at[:end]
		}
		return slices.Contains(fields, at)
	})
}
