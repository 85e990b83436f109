// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/timestamppb"
	mcp "istio.io/api/mcp/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
)

func schemaOf(tb testing.TB, kind configstore.GroupVersionKind) *configstore.Schema {
	tb.Helper()
	schema, ok := istio.Schemas().Find(kind)
	if !ok {
		tb.Fatalf("no schema of %s", kind)
	}
	return &schema
}

// entry returns a valid ServiceEntry.
func entry(namespace, name string, hosts ...string) configstore.Config {
	if len(hosts) == 0 {
		hosts = []string{name + ".example.com"}
	}
	return configstore.Config{
		Meta: configstore.Meta{GroupVersionKind: istio.ServiceEntry, Name: name, Namespace: namespace},
		Spec: &networking.ServiceEntry{
			Hosts:      hosts,
			Ports:      []*networking.ServicePort{{Number: 80, Name: "http", Protocol: "HTTP"}},
			Resolution: networking.ServiceEntry_DNS,
		},
	}
}

// encode returns an object as a resource in an Any.
func encode(c *configstore.Config) (*anypb.Any, error) {
	resource, err := toResource(c)
	if err == nil {
		var value []byte
		if value, err = (proto.MarshalOptions{Deterministic: true}).Marshal(resource); err == nil {
			return &anypb.Any{TypeUrl: resourceTypeURL, Value: value}, nil
		}
		err = fieldErrorf("metadata", "%v", err) // because a string is not UTF-8
	}
	return nil, fmt.Errorf("encode %s: %w", c.Key().Object(), err)
}

func pack(tb testing.TB, m proto.Message) *anypb.Any {
	tb.Helper()
	out, err := anypb.New(m)
	if err != nil {
		tb.Fatal(err)
	}
	return out
}

func encoded(tb testing.TB, c configstore.Config) *anypb.Any {
	tb.Helper()
	out, err := encode(&c)
	if err != nil {
		tb.Fatal(err)
	}
	return out
}

func TestTypeURL(t *testing.T) {
	t.Parallel()
	for url, kind := range map[string]configstore.GroupVersionKind{
		"networking.istio.io/v1/ServiceEntry": istio.ServiceEntry,
		"core/v1/Service":                     {Version: "v1", Kind: "Service"},
	} {
		if got := typeURL(kind); got != url {
			t.Errorf("typeURL(%v) = %q, want %q", kind, got, url)
		}
	}
}

// TestEncode compares with the message that Istio's server sends.
func TestEncode(t *testing.T) {
	t.Parallel()
	c := entry("default", "db")
	c.ResourceVersion = "17"
	c.Labels = map[string]string{"a": "1", "b": "2", "c": "3"}
	c.Annotations = map[string]string{"d": "4"}
	c.CreationTimestamp = time.Unix(1700000000, 5).UTC()
	c.UID, c.Domain, c.Generation = "uid", "cluster.local", 3
	resource := encoded(t, c)
	if want := "type.googleapis.com/istio.mcp.v1alpha1.Resource"; resource.GetTypeUrl() != want {
		t.Errorf("type %q", resource.GetTypeUrl())
	}
	var got mcp.Resource
	if err := resource.UnmarshalTo(&got); err != nil {
		t.Fatal(err)
	}
	want := &mcp.Resource{
		Metadata: &mcp.Metadata{
			Name: "default/db", Version: "17", CreateTime: timestamppb.New(c.CreationTimestamp),
			Labels: c.Labels, Annotations: c.Annotations,
		},
		Body: pack(t, c.Spec),
	}
	if diff := cmp.Diff(want, &got, protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
	if !bytes.Equal(resource.GetValue(), encoded(t, c.Clone()).GetValue()) {
		t.Error("equal objects have other bytes")
	}
	decoded, err := decode(resource, schemaOf(t, istio.ServiceEntry))
	if err != nil {
		t.Fatal(err)
	}
	c.UID, c.Domain, c.Generation = "", "", 0
	if !decoded.Equal(c) {
		t.Error(cmp.Diff(c, decoded, protocmp.Transform()))
	}
}

func TestEncodeRefuses(t *testing.T) {
	t.Parallel()
	bad := func(change func(c *configstore.Config)) configstore.Config {
		c := entry("default", "db")
		change(&c)
		return c
	}
	for want, c := range map[string]configstore.Config{
		"ServiceEntry default/a/b: metadata.name:":      bad(func(c *configstore.Config) { c.Name = "a/b" }),
		"ServiceEntry a/b/db: metadata.name:":           bad(func(c *configstore.Config) { c.Namespace = "a/b" }),
		"ServiceEntry default/: metadata.name:":         bad(func(c *configstore.Config) { c.Name = "" }),
		"ServiceEntry default/db: body:":                bad(func(c *configstore.Config) { c.Spec = nil }),
		"ServiceEntry default/db: metadata:":            bad(func(c *configstore.Config) { c.Labels = map[string]string{"a": "\xff"} }),
		"ServiceEntry default/db: metadata.createTime:": bad(func(c *configstore.Config) { c.CreationTimestamp = time.Unix(1<<40, 0) }),
	} {
		if _, err := encode(&c); err == nil || !strings.HasPrefix(err.Error(), "encode "+want) {
			t.Errorf("error %v, want one of %s", err, want)
		}
	}
	c := entry("default", "db", "\xff")
	_, err := encode(&c)
	if err == nil || !strings.HasPrefix(err.Error(), "encode ServiceEntry default/db: body:") {
		t.Errorf("error %v", err)
	}
}

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	spec := func() *anypb.Any { return pack(t, entry("default", "db").Spec) }
	named := &mcp.Metadata{Name: "default/db"}
	for _, tt := range []struct {
		field    string
		resource *anypb.Any
		named    bool
	}{
		{"resource", nil, false},
		{"resource", &anypb.Any{TypeUrl: resourceTypeURL, Value: []byte("garbage")}, false},
		{"resource", spec(), false},
		{"metadata", pack(t, &mcp.Resource{Body: spec()}), false},
		{"metadata.name", pack(t, &mcp.Resource{Metadata: &mcp.Metadata{}, Body: spec()}), false},
		{"metadata.name", pack(t, &mcp.Resource{Metadata: &mcp.Metadata{Name: "db"}, Body: spec()}), false},
		{"metadata.name", pack(t, &mcp.Resource{Metadata: &mcp.Metadata{Name: "default/"}, Body: spec()}), false},
		{"metadata.name", pack(t, &mcp.Resource{Metadata: &mcp.Metadata{Name: "a/b/c"}, Body: spec()}), false},
		{"metadata.createTime", pack(t, &mcp.Resource{
			Metadata: &mcp.Metadata{Name: "default/db", CreateTime: &timestamppb.Timestamp{Seconds: 1 << 60}}, Body: spec(),
		}), true},
		{"body", pack(t, &mcp.Resource{Metadata: named}), true},
		{"body", pack(t, &mcp.Resource{Metadata: named, Body: &anypb.Any{}}), true},
		{"body", pack(t, &mcp.Resource{Metadata: named, Body: pack(t, &networking.Gateway{})}), true},
		{"body", pack(t, &mcp.Resource{
			Metadata: named, Body: &anypb.Any{TypeUrl: spec().GetTypeUrl(), Value: []byte("garbage")},
		}), true},
	} {
		_, err := decode(tt.resource, schemaOf(t, istio.ServiceEntry))
		var f *fieldError
		if !errors.As(err, &f) || f.field != tt.field {
			t.Errorf("error %v, want one of %s", err, tt.field)
		}
		if name, namespace, ok := peekName(tt.resource); ok != tt.named || ok && (name != "db" || namespace != "default") {
			t.Errorf("%v: the name is %s/%s, %v", err, namespace, name, ok)
		}
	}
}

// TestPeekNameOfWhatIsCut: a name that was cut short is none, or it would be that of
// another object.
func TestPeekNameOfWhatIsCut(t *testing.T) {
	t.Parallel()
	resource := encoded(t, entry("default", "db"))
	whole := bytes.Index(resource.GetValue(), []byte("default/db")) + len("default/db")
	for n := range resource.GetValue() {
		name, namespace, ok := peekName(&anypb.Any{TypeUrl: resourceTypeURL, Value: resource.GetValue()[:n]})
		if ok != (n >= whole) || ok && (name != "db" || namespace != "default") {
			t.Errorf("%d bytes: the name is %s/%s, %v", n, namespace, name, ok)
		}
	}
}

// FuzzDecode: a decoded object has the name that peekName reads, and decodes to the same object
// after encoding.
func FuzzDecode(f *testing.F) {
	schema := schemaOf(f, istio.ServiceEntry)
	seed := entry("default", "db")
	seed.Labels, seed.ResourceVersion, seed.CreationTimestamp = map[string]string{"a": "b"}, "1", time.Unix(1, 2)
	f.Add(encoded(f, seed).GetValue())
	f.Add(append(encoded(f, seed).GetValue(), encoded(f, entry("other", "name")).GetValue()...))
	f.Add([]byte("\x0a\xff"))
	f.Fuzz(func(t *testing.T, value []byte) {
		resource := &anypb.Any{TypeUrl: resourceTypeURL, Value: value}
		name, namespace, named := peekName(resource)
		c, err := decode(resource, schema)
		if err != nil {
			return
		}
		if !named || c.Name != name || c.Namespace != namespace {
			t.Fatalf("decoded %s, but the name is %s/%s, %v", c.Key().Object(), namespace, name, named)
		}
		again, err := encode(&c)
		if err != nil {
			t.Fatal(err)
		}
		d, err := decode(again, schema)
		if err != nil {
			t.Fatal(err)
		}
		if third, err := encode(&d); err != nil || !bytes.Equal(third.GetValue(), again.GetValue()) {
			t.Fatalf("%v\n%x\n%x", err, third.GetValue(), again.GetValue())
		}
	})
}
