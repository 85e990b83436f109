// SPDX-License-Identifier: Apache-2.0

package redact_test

import (
	"strings"
	"testing"

	udpatype "github.com/cncf/xds/go/udpa/type/v1"
	xdstype "github.com/cncf/xds/go/xds/type/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	basicauth "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/basic_auth/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilotkit/pilotkit/internal/redact"
	"github.com/pilotkit/pilotkit/internal/test/testmain"
)

func TestMain(m *testing.M) { testmain.Verify(m) }

// hidden is in every secret of the tests.
const hidden = "hidden-value"

func inline(text string) *core.DataSource {
	return &core.DataSource{Specifier: &core.DataSource_InlineString{InlineString: text}}
}

func inlineBytes(text string) *core.DataSource {
	return &core.DataSource{Specifier: &core.DataSource_InlineBytes{InlineBytes: []byte(text)}}
}

func pack(t *testing.T, m proto.Message) *anypb.Any {
	t.Helper()
	packed, err := anypb.New(m)
	if err != nil {
		t.Fatal(err)
	}
	return packed
}

// certificate returns a certificate with all kinds of secrets, or its redacted form.
func certificate(t *testing.T, text func(string) string) *tlsv3.TlsCertificate {
	t.Helper()
	return &tlsv3.TlsCertificate{
		CertificateChain: inline("public"),
		PrivateKey:       inlineBytes(text(hidden)),
		Password:         inline(text(hidden)),
		Pkcs12:           inlineBytes(text(hidden)),
		PrivateKeyProvider: &tlsv3.PrivateKeyProvider{
			ProviderName: "hsm",
			ConfigType:   &tlsv3.PrivateKeyProvider_TypedConfig{TypedConfig: pack(t, wrapperspb.String(text(hidden)))},
		},
	}
}

func secrets(string) string { return hidden }

func marks(string) string { return redact.Mark }

// messages returns messages with secrets, or their redacted forms.
func messages(t *testing.T, text func(string) string) map[string]proto.Message {
	t.Helper()
	secret := func(s *tlsv3.Secret) proto.Message {
		s.Name = "s"
		return s
	}
	common := &tlsv3.CommonTlsContext{TlsCertificates: []*tlsv3.TlsCertificate{certificate(t, text), certificate(t, text)}}
	filter := &basicauth.BasicAuth{Users: inline(text(hidden))}
	return map[string]proto.Message{
		"certificate": secret(&tlsv3.Secret{Type: &tlsv3.Secret_TlsCertificate{TlsCertificate: certificate(t, text)}}),
		"session tickets": secret(&tlsv3.Secret{Type: &tlsv3.Secret_SessionTicketKeys{
			SessionTicketKeys: &tlsv3.TlsSessionTicketKeys{Keys: []*core.DataSource{inline(text(hidden)), inlineBytes(text(hidden))}},
		}}),
		"generic": secret(&tlsv3.Secret{Type: &tlsv3.Secret_GenericSecret{GenericSecret: &tlsv3.GenericSecret{
			Secret: inline(text(hidden)), Secrets: map[string]*core.DataSource{"name": inline(text(hidden))},
		}}}),
		"authorities": secret(&tlsv3.Secret{Type: &tlsv3.Secret_ValidationContext{
			ValidationContext: &tlsv3.CertificateValidationContext{TrustedCa: inline("public")},
		}}),
		"cluster": &clusterv3.Cluster{
			Name: "c", TransportSocket: &core.TransportSocket{Name: "tls", ConfigType: &core.TransportSocket_TypedConfig{
				TypedConfig: pack(t, &tlsv3.UpstreamTlsContext{Sni: "public", CommonTlsContext: common}),
			}},
			TypedExtensionProtocolOptions: map[string]*anypb.Any{"nested": pack(t, pack(t, filter))},
		},
	}
}

// TestMessage: all secrets are removed, at any place, and everything else is kept.
func TestMessage(t *testing.T) {
	t.Parallel()
	want := messages(t, marks)
	for name, m := range messages(t, secrets) {
		redact.Message(m)
		if diff := cmp.Diff(want[name], m, protocmp.Transform()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		data, err := protojson.Marshal(m)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if strings.Contains(string(data), hidden) {
			t.Errorf("%s: %s", name, data)
		}
	}
}

// TestTypedStructs: a message that is written as a struct is redacted by its real type.
func TestTypedStructs(t *testing.T) {
	t.Parallel()
	value := func(text string) *structpb.Struct {
		out, err := structpb.NewStruct(map[string]any{"users": map[string]any{"inline_string": text}, "forward_username_header": "x-user"})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	const known, unknown = "type.googleapis.com/envoy.extensions.filters.http.basic_auth.v3.BasicAuth", "type.googleapis.com/not.Known"
	for name, test := range map[string]struct{ got, want proto.Message }{
		"xds":     {&xdstype.TypedStruct{TypeUrl: known, Value: value(hidden)}, &xdstype.TypedStruct{TypeUrl: known, Value: value(redact.Mark)}},
		"udpa":    {&udpatype.TypedStruct{TypeUrl: known, Value: value(hidden)}, &udpatype.TypedStruct{TypeUrl: known, Value: value(redact.Mark)}},
		"unknown": {&xdstype.TypedStruct{TypeUrl: unknown, Value: value(hidden)}, &xdstype.TypedStruct{TypeUrl: unknown}},
	} {
		packed, want := pack(t, test.got), test.want
		redact.Message(packed)
		got, err := packed.UnmarshalNew()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestWhatCannotBeLookedInto: opaque content is removed: an unknown type, bytes that do not fit
// their type, unknown fields.
func TestWhatCannotBeLookedInto(t *testing.T) {
	t.Parallel()
	unknown := &clusterv3.Cluster{Name: "c", TypedExtensionProtocolOptions: map[string]*anypb.Any{
		"type":  {TypeUrl: "type.googleapis.com/not.Known", Value: []byte(hidden)},
		"bytes": {TypeUrl: "type.googleapis.com/envoy.config.core.v3.Node", Value: []byte(hidden)},
		"none":  {Value: []byte(hidden)},
	}}
	unknown.ProtoReflect().SetUnknown([]byte("\xfa\xff\x01\x0c" + hidden))
	redact.Message(unknown)
	if text := prototext.Format(unknown) + unknown.String(); strings.Contains(text, hidden) {
		t.Errorf("%s", text)
	}
	if _, err := protojson.Marshal(unknown); err != nil {
		t.Error(err)
	}
	if text := prototext.Format(unknown); !strings.Contains(text, "not.Known cannot be decoded here") {
		t.Errorf("the type is not named: %s", text)
	}
}
