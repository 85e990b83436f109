// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"maps"
	"slices"
	"testing"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/resource"
)

// FuzzRequest: every message is decoded as protobuf decodes it.
func FuzzRequest(f *testing.F) {
	for _, m := range []proto.Message{
		&discovery.DiscoveryRequest{},
		&discovery.DiscoveryRequest{
			VersionInfo: "1", Node: &core.Node{Id: "a"}, ResourceNames: []string{"a", "*", ""}, TypeUrl: "type", ResponseNonce: "2",
			ErrorDetail: &status.Status{Code: 3, Message: "why"},
		},
		&discovery.DeltaDiscoveryRequest{
			Node: &core.Node{Id: "a"}, TypeUrl: "type", ResourceNamesSubscribe: []string{"a", "b"}, ResourceNamesUnsubscribe: []string{"*"},
			InitialResourceVersions: map[string]string{"a": resource.Version(1), "b": "another's"}, ResponseNonce: "1",
		},
	} {
		data, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(false, data)
		f.Add(true, data)
	}
	f.Add(false, []byte{0x9a, 0x00, 0x01, 'a'}) // a tag that is not written in the shortest way
	f.Fuzz(func(t *testing.T, delta bool, data []byte) {
		r := NewRequest(delta, 0, 0)
		if r.Decode(data) != nil {
			return
		}
		if delta {
			compareDelta(t, r, data)
			return
		}
		compare(t, r, data)
		r.KeepNames()
		r.Reset()
		if err := r.Decode(data); err != nil || !r.Same || r.Names.Count > 0 {
			t.Errorf("the same names again: same is %v, %d are kept, error %v", r.Same, r.Names.Count, err)
		}
	})
}

// TestRefusalWithinACharacter: the text of a NACK that an Envoy has cut within a character is kept, because
// otherwise the stream would end, and the Envoy would come back with the same NACK.
func TestRefusalWithinACharacter(t *testing.T) {
	cut := protowire.AppendString(protowire.AppendTag(nil, 2, protowire.BytesType), "cluster \xe2\x82...(truncated)")
	for delta, field := range map[bool]protowire.Number{false: 6, true: 7} {
		r := NewRequest(delta, 0, 0)
		err := r.Decode(protowire.AppendBytes(protowire.AppendTag(nil, field, protowire.BytesType), cut))
		if want := "cluster \uFFFD...(truncated)"; err != nil || !r.Refused || r.Text != want {
			t.Errorf("delta %t: refused %t, text %q, error %v", delta, r.Refused, r.Text, err)
		}
	}
}

func compare(t *testing.T, r *Request, data []byte) {
	t.Helper()
	var want discovery.DiscoveryRequest
	if err := proto.Unmarshal(data, &want); err != nil {
		return // of fields that do not count here
	}
	if r.TypeURL != want.GetTypeUrl() || r.Nonce != want.GetResponseNonce() || r.Version != want.GetVersionInfo() ||
		r.Refused != (want.GetErrorDetail() != nil) || !proto.Equal(r.Node, want.GetNode()) {
		t.Errorf("decoded %+v, want %v", r, &want)
	}
	compareNames(t, &r.Names, want.GetResourceNames())
}

func compareDelta(t *testing.T, r *Request, data []byte) {
	t.Helper()
	var want discovery.DeltaDiscoveryRequest
	if err := proto.Unmarshal(data, &want); err != nil {
		return
	}
	if r.TypeURL != want.GetTypeUrl() || r.Nonce != want.GetResponseNonce() ||
		r.Refused != (want.GetErrorDetail() != nil) || !proto.Equal(r.Node, want.GetNode()) {
		t.Errorf("decoded %+v, want %v", r, &want)
	}
	compareNames(t, &r.Subscribe, want.GetResourceNamesSubscribe())
	compareNames(t, &r.Unsubscribe, want.GetResourceNamesUnsubscribe())
	names := slices.Sorted(maps.Keys(want.GetInitialResourceVersions()))
	var got []string
	for res := range r.InitialVersions.Snapshot().List.All() {
		got = append(got, res.Name)
		version := []byte(want.GetInitialResourceVersions()[res.Name])
		if known := resource.ParseVersion(version) != 0; known != res.IsPresent() {
			t.Errorf("%s in version %q is known: %v, want %v", res.Name, version, res.IsPresent(), known)
		}
	}
	if !slices.Equal(got, names) {
		t.Errorf("versions of %q, want %q", got, names)
	}
}

func compareNames(t *testing.T, got *NameList, want []string) {
	t.Helper()
	if !slices.Equal(got.Decoded(), want) || got.Count != len(want) || got.Wildcard != slices.Contains(want, WildcardName) {
		t.Errorf("%d names, wildcard %v: %q, want %q", got.Count, got.Wildcard, got.Decoded(), want)
	}
}
