// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"bytes"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"
)

// Comparisons for the kinds with many, frequently changing objects. They agree with proto.Equal,
// without its reflection; a test compares them for every field of the messages.

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
	if !okA || !okB || a == nil || b == nil {
		return proto.Equal(m, n)
	}
	return equalWorkloads(a, b)
}

// equalWorkloads and equalPorts compare elements of lists: there nil is an empty
// message.
func equalWorkloads(a, b *networking.WorkloadEntry) bool {
	return a.GetAddress() == b.GetAddress() && a.GetNetwork() == b.GetNetwork() &&
		a.GetLocality() == b.GetLocality() && a.GetWeight() == b.GetWeight() &&
		a.GetServiceAccount() == b.GetServiceAccount() &&
		maps.Equal(a.GetPorts(), b.GetPorts()) && maps.Equal(a.GetLabels(), b.GetLabels()) && equalUnknown(a, b)
}

func equalPorts(a, b *networking.ServicePort) bool {
	return a.GetNumber() == b.GetNumber() && a.GetProtocol() == b.GetProtocol() && a.GetName() == b.GetName() &&
		a.GetTargetPort() == b.GetTargetPort() && equalUnknown(a, b)
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
