// SPDX-License-Identifier: Apache-2.0

package istio_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
)

// TestValidatorsTakeAnything: a validator may be called without Schema.Check,
// which sees to the message types.
func TestValidatorsTakeAnything(t *testing.T) {
	tests := []struct {
		name string
		spec proto.Message
		want string
	}{
		{name: "nothing", want: "spec: is required"},
		{name: "nil message", spec: (*networking.ServiceEntry)(nil), want: "spec: is required"},
		{
			name: "another kind's spec", spec: &networking.Gateway{},
			want: "spec: must be a istio.networking.v1alpha3.ServiceEntry, is a istio.networking.v1alpha3.Gateway",
		},
		{
			name: "nil message of another kind", spec: (*networking.Gateway)(nil),
			want: "spec: must be a istio.networking.v1alpha3.ServiceEntry, is a istio.networking.v1alpha3.Gateway",
		},
	}
	schema, _ := istio.Schemas().Find(istio.ServiceEntry)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, violations := schema.Validate(configstore.Config{Spec: tt.spec})
			if diff := cmp.Diff([]string{tt.want}, lines(violations)); diff != "" {
				t.Errorf("violations (-want +got):\n%s", diff)
			}
		})
	}
}

// TestOverflowingDurations: protobuf can carry invalid durations.
func TestOverflowingDurations(t *testing.T) {
	schema, _ := istio.Schemas().Find(istio.DestinationRule)
	_, violations := schema.Validate(configstore.Config{Spec: &networking.DestinationRule{
		Host: "a",
		TrafficPolicy: &networking.TrafficPolicy{OutlierDetection: &networking.OutlierDetection{
			Interval:         &durationpb.Duration{Seconds: 1 << 62},
			BaseEjectionTime: &durationpb.Duration{Seconds: 1, Nanos: -1},
		}},
	}})
	want := []string{
		"spec.trafficPolicy.outlierDetection.interval: must be a duration, is 4611686018427387904s 0ns",
		"spec.trafficPolicy.outlierDetection.baseEjectionTime: must be a duration, is 1s -1ns",
	}
	if diff := cmp.Diff(want, lines(violations)); diff != "" {
		t.Errorf("violations (-want +got):\n%s", diff)
	}
}

// TestServiceEntryHasNoUpperBound is about a weakness of Istio 1.30, which has no limits for sizes
// that the API server of Kubernetes rejects.
func TestServiceEntryHasNoUpperBound(t *testing.T) {
	entry := &networking.ServiceEntry{Resolution: networking.ServiceEntry_STATIC}
	for i := range 257 {
		entry.Hosts = append(entry.Hosts, fmt.Sprintf("h%d.example.com", i))
		entry.Addresses = append(entry.Addresses, fmt.Sprintf("10.0.%d.%d", i/256, i%256))
		entry.Ports = append(entry.Ports, &networking.ServicePort{Number: uint32(i + 1), Name: fmt.Sprintf("p%d", i), Protocol: "HTTP"})
	}
	for range 4097 {
		entry.Endpoints = append(entry.Endpoints, &networking.WorkloadEntry{Address: "10.1.0.1"})
	}
	schema, _ := istio.Schemas().Find(istio.ServiceEntry)
	warnings, violations := schema.Validate(configstore.Config{Spec: entry})
	if violations != nil {
		t.Errorf("violations: %v", violations)
	}
	want := []string{
		"spec.hosts: has 257 elements; Kubernetes takes at most 256",
		"spec.addresses: has 257 elements; Kubernetes takes at most 256",
		"spec.ports: has 257 elements; Kubernetes takes at most 256",
		"spec.endpoints: has 4097 elements; Kubernetes takes at most 4096",
	}
	if diff := cmp.Diff(want, lines(warnings)); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

// TestValidObjectsCostNoMemory: the memory that a valid object costs does not
// depend on its size.
func TestValidObjectsCostNoMemory(t *testing.T) {
	schema, _ := istio.Schemas().Find(istio.ServiceEntry)
	allocations := func(endpoints int) float64 {
		c := standardEntry(endpoints)
		return testing.AllocsPerRun(20, func() {
			if warnings, err := schema.Check(c); err != nil || len(warnings) > 0 {
				t.Fatal(warnings, err)
			}
		})
	}
	if few, many := allocations(5), allocations(500); few > 8 || many > few {
		t.Errorf("%v allocations for 5 endpoints and %v for 500, want the same few", few, many)
	}
}

// TestFindingsAreInOrder: maps are walked in no order, findings are in one.
func TestFindingsAreInOrder(t *testing.T) {
	labels := map[string]string{}
	var want []string
	for c := 'a'; c <= 'z'; c++ {
		labels[string(c)] = "-"
		want = append(want, fmt.Sprintf("spec.labels[%c]", c))
	}
	schema, _ := istio.Schemas().Find(istio.WorkloadEntry)
	_, violations := schema.Validate(configstore.Config{Spec: &networking.WorkloadEntry{Address: "10.0.0.1", Labels: labels}})
	var got []string
	for _, v := range violations {
		got = append(got, v.Field)
		if !strings.Contains(v.Message, "must be empty or a label value") {
			t.Errorf("unexpected %v", v)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
}
