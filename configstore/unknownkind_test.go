// SPDX-License-Identifier: Apache-2.0

package configstore_test

import (
	"errors"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
)

// TestUnknownKind: the error has the kind without empty parts, and the kind that was probably meant.
func TestUnknownKind(t *testing.T) {
	t.Parallel()
	const networking, security, gateways = "networking.istio.io", "security.istio.io", "gateway.networking.k8s.io"
	long := strings.Repeat("x", 1000)
	for _, test := range []struct {
		kind configstore.GroupVersionKind
		spec proto.Message
		want string
	}{
		{want: ": none is given"},
		{spec: wrapperspb.Bool(true), want: ": none is given, and not exactly one has specs of type *wrapperspb.BoolValue"},
		{kind: configstore.GroupVersionKind{Kind: "Foo"}, want: " Foo"},
		{kind: configstore.GroupVersionKind{Version: "v1", Kind: "Foo"}, want: " v1/Foo"},
		{kind: configstore.GroupVersionKind{Version: "v1", Kind: "Service"}, want: " v1/Service"},
		{kind: configstore.GroupVersionKind{Kind: "DestinationRul"}, want: " DestinationRul: did you mean DestinationRule?"},
		{kind: configstore.GroupVersionKind{Group: networking, Version: "v1", Kind: "DestinationRul"}, want: " networking.istio.io/v1/DestinationRul: did you mean DestinationRule?"},
		{kind: configstore.GroupVersionKind{Group: networking, Version: "v1", Kind: "virtualservices"}, want: " networking.istio.io/v1/virtualservices: did you mean VirtualService?"},
		{kind: configstore.GroupVersionKind{Group: networking, Version: "v1", Kind: "Gatway"}, want: " networking.istio.io/v1/Gatway: did you mean Gateway?"},
		{kind: configstore.GroupVersionKind{Group: networking, Version: "v1", Kind: "Service"}, want: " networking.istio.io/v1/Service"},
		{kind: configstore.GroupVersionKind{Group: networking, Version: "v1"}, want: " networking.istio.io/v1"},
		{kind: configstore.GroupVersionKind{Group: networking, Version: "v9", Kind: "Sidecar"}, want: " networking.istio.io/v9/Sidecar: Sidecar has the versions v1, v1alpha3, v1beta1"},
		{kind: configstore.GroupVersionKind{Group: security, Version: "v1", Kind: "VirtualService"}, want: " security.istio.io/v1/VirtualService: did you mean networking.istio.io/v1/VirtualService?"},
		{kind: configstore.GroupVersionKind{Group: "networking.istio.oi", Version: "v1", Kind: "Sidecar"}, want: " networking.istio.oi/v1/Sidecar: did you mean networking.istio.io/v1/Sidecar?"},
		{kind: configstore.GroupVersionKind{Group: gateways, Version: "v1", Kind: "Gateway"}, want: " gateway.networking.k8s.io/v1/Gateway"},
		{kind: configstore.GroupVersionKind{Group: networking, Kind: long}, want: " networking.istio.io/" + long[:64] + "... (1000 bytes)"},
	} {
		err := istio.Schemas().UnknownKind(test.kind, test.spec)
		if want := "unknown kind" + test.want; err.Error() != want || !errors.Is(err, configstore.ErrUnknownKind) {
			t.Errorf("%q, want %q", err, want)
		}
	}
	if got := (configstore.Schemas{}).UnknownKind(configstore.GroupVersionKind{Kind: "A"}, nil).Error(); got != "unknown kind A" {
		t.Errorf("without schemas: %q", got)
	}
}
