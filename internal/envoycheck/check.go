// SPDX-License-Identifier: Apache-2.0

// Package envoycheck predicts whether a client would reject a resource, or a part of one, and why. A
// client that rejects a part rejects the whole resource. Package xdsbuild therefore checks the
// contributions of objects to shared resources; tests check whole resources. Package headerformat
// checks the values of headers, and package re2 regular expressions.
//
// The rules are the generated validation (ValidateAll, including messages that are packed in an
// Any), the known additional checks of Envoy, and, for gRPC clients, the checks of any of grpc-go,
// gRPC C-core and grpc-js.
package envoycheck

import (
	"errors"
	"fmt"
	"math"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	httprbac "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	matcher "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/pilotkit/pilotkit/internal/envoycheck/re2"
)

// Envoy returns all reasons why an Envoy would reject a resource, joined, or nil. Of a virtual host
// it checks only the domains. Of a route or a filter chain it checks the properties that are
// independent of its context.
func Envoy(m proto.Message) error { return check(m, false) }

// GRPC returns all reasons why one of the gRPC clients would reject a resource, joined, or nil.
func GRPC(m proto.Message) error { return check(m, true) }

// maxSeconds is the maximum duration that Envoy accepts: the nanoseconds of a longer one exceed 64
// bits.
const maxSeconds = 9223372035

// report collects the errors.
type report struct {
	of   proto.Message
	grpc bool
	errs []error
	// unpackOne is unpackField: a method value is an allocation.
	unpackOne func(protoreflect.FieldDescriptor, protoreflect.Value) bool
}

func (r *report) fail(format string, args ...any) {
	r.errs = append(r.errs, fmt.Errorf("%s: "+format, append([]any{r.name()}, args...)...))
}

// name returns the type of the message, and the name of a resource.
func (r *report) name() string {
	kind := string(r.of.ProtoReflect().Descriptor().Name())
	switch m := r.of.(type) {
	case *endpointv3.ClusterLoadAssignment:
		return kind + " " + m.GetClusterName()
	case *clusterv3.Cluster, *listenerv3.Listener, *routev3.RouteConfiguration:
		return kind + " " + m.(interface{ GetName() string }).GetName()
	default:
		return kind
	}
}

func check(m proto.Message, grpc bool) error {
	r := &report{grpc: grpc, of: m}
	r.unpackOne = r.unpackField
	switch m := m.(type) {
	case *clusterv3.Cluster:
		r.cluster(m)
	case *endpointv3.ClusterLoadAssignment:
		r.assignment(m, false)
	case *listenerv3.Listener:
		r.listener(m)
	case *routev3.RouteConfiguration:
		r.routes(m)
	case *routev3.VirtualHost:
		r.domains(m)
	case *routev3.Route:
		r.route(m, math.MaxUint32, r.fail)
	case *listenerv3.FilterChain:
		r.chain(0, m)
	}
	r.validate(m)
	return errors.Join(r.errs...)
}

// validate runs the generated validation of a message, and of all messages that are packed in it.
func (r *report) validate(m proto.Message) {
	if v, ok := m.(interface{ ValidateAll() error }); ok {
		if err := v.ValidateAll(); err != nil {
			r.fail("%w", err)
		}
	}
	r.unpack(m.ProtoReflect())
}

// unpack validates the messages in m that are packed in an Any, regular expressions, and durations, and
// for gRPC clients the parts of policies.
func (r *report) unpack(m protoreflect.Message) {
	switch m := m.Interface().(type) {
	case *anypb.Any:
		r.unpackAny(m)
		return
	case *matcher.RegexMatcher:
		if err := re2.Check(m.GetRegex()); err != nil {
			r.fail("regular expression %.200q: %w", m.GetRegex(), err)
		}
		return
	case *durationpb.Duration:
		if m.CheckValid() != nil || m.GetSeconds() < 0 || m.GetNanos() < 0 || m.GetSeconds() > maxSeconds {
			r.fail("Duration out-of-range: %ds %dns", m.GetSeconds(), m.GetNanos())
		}
		return
	}
	if r.grpc {
		r.policyPart(m.Interface())
	}
	fields, known := fieldsToCheck()[m.Descriptor().FullName()]
	if !known {
		m.Range(r.unpackOne)
		return
	}
	for _, f := range fields {
		if m.Has(f) {
			r.unpackField(f, m.Get(f))
		}
	}
}

func (r *report) policyPart(m proto.Message) {
	switch m := m.(type) {
	case *rbacv3.Policy:
		r.rbacPolicy(m)
	case *rbacv3.Permission:
		r.permission(m)
	case *rbacv3.Principal:
		r.principal(m)
	}
}

// unpackField unpacks the messages of a field.
func (r *report) unpackField(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
	switch {
	case f.IsMap():
		if f.MapValue().Message() != nil {
			v.Map().Range(func(_ protoreflect.MapKey, v protoreflect.Value) bool {
				r.unpack(v.Message())
				return true
			})
		}
	case f.Message() == nil:
	case f.IsList():
		for i := range v.List().Len() {
			r.unpack(v.List().Get(i).Message())
		}
	default:
		r.unpack(v.Message())
	}
	return true
}

func (r *report) unpackAny(packed *anypb.Any) {
	inner, err := packed.UnmarshalNew()
	if err != nil {
		r.fail("%s: %w", packed.GetTypeUrl(), err)
		return
	}
	if r.grpc {
		switch inner := inner.(type) {
		case *tlsv3.UpstreamTlsContext, *tlsv3.DownstreamTlsContext:
			return // the validation requires secrets by SDS, which gRPC rejects
		case *httprbac.RBAC:
			r.rbac(inner.GetRules())
		}
	}
	r.validate(inner)
}

// unpackTo unpacks an Any, and reports whether it contains a message of this type.
func unpackTo[M proto.Message](packed *anypb.Any, m M) (M, bool) {
	if !packed.MessageIs(m) {
		return m, false
	}
	return m, packed.UnmarshalTo(m) == nil
}
