// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"bytes"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"
)

// The comparisons of the kinds of which there are many and that change often.
// They agree with proto.Equal, without its reflection; a test compares them for
// every field that the messages have.

func equalServiceEntries(m, n proto.Message) bool {
	a, okA := m.(*networking.ServiceEntry)
	b, okB := n.(*networking.ServiceEntry)
	if !okA || !okB || a == nil || b == nil {
		return proto.Equal(m, n)
	}
	return a.Location == b.Location && a.Resolution == b.Resolution &&
		slices.Equal(a.Hosts, b.Hosts) && slices.Equal(a.Addresses, b.Addresses) &&
		slices.Equal(a.ExportTo, b.ExportTo) && slices.Equal(a.SubjectAltNames, b.SubjectAltNames) &&
		slices.EqualFunc(a.Ports, b.Ports, equalPorts) &&
		slices.EqualFunc(a.Endpoints, b.Endpoints, equalWorkloads) &&
		equalSelectors(a.WorkloadSelector, b.WorkloadSelector) && equalUnknown(a, b)
}

func equalWorkloadEntries(m, n proto.Message) bool {
	a, okA := m.(*networking.WorkloadEntry)
	b, okB := n.(*networking.WorkloadEntry)
	if !okA || !okB {
		return proto.Equal(m, n)
	}
	return equalWorkloads(a, b)
}

func equalWorkloads(a, b *networking.WorkloadEntry) bool {
	if a == nil || b == nil {
		return proto.Equal(a, b)
	}
	return a.Address == b.Address && a.Network == b.Network && a.Locality == b.Locality &&
		a.Weight == b.Weight && a.ServiceAccount == b.ServiceAccount &&
		maps.Equal(a.Ports, b.Ports) && maps.Equal(a.Labels, b.Labels) && equalUnknown(a, b)
}

func equalPorts(a, b *networking.ServicePort) bool {
	if a == nil || b == nil {
		return proto.Equal(a, b)
	}
	return a.Number == b.Number && a.Protocol == b.Protocol && a.Name == b.Name &&
		a.TargetPort == b.TargetPort && equalUnknown(a, b)
}

func equalSelectors(a, b *networking.WorkloadSelector) bool {
	if a == nil || b == nil {
		return a == b
	}
	return maps.Equal(a.Labels, b.Labels) && equalUnknown(a, b)
}

// equalUnknown compares fields that this version of the API does not know. Their
// order counts, which proto.Equal does not promise to ignore either.
func equalUnknown(a, b proto.Message) bool {
	return bytes.Equal(a.ProtoReflect().GetUnknown(), b.ProtoReflect().GetUnknown())
}
