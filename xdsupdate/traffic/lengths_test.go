// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"strings"
	"testing"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// TestLongTextsAreRefused: what clients would refuse for the length of a text, validation
// refuses before. Each string of an object is 300 and 20,000 bytes long at a time.
func TestLongTextsAreRefused(t *testing.T) {
	count := 0
	for _, o := range []struct{ kind, text string }{
		{"VirtualService", everyText},
		{"VirtualService", `{"hosts":["a.example.com"],"http":[{"match":[{"uri":{"prefix":"/a"}}],"redirect":{"uri":"/b","authority":"c","scheme":"https"}}]}`},
		{"VirtualService", `{"hosts":["a.example.com"],"http":[{"match":[{"uri":{"regex":"/a"}}],"directResponse":{"status":200,"body":{"string":"x"}}}]}`},
		{"VirtualService", `{"hosts":["a.example.com"],"http":[{"rewrite":{"uriRegexRewrite":{"match":"/a","rewrite":"/b"}},"route":[{"destination":{"host":"a.example.com"}}]}]}`},
		{"DestinationRule", `{"host":"a.example.com","subsets":[{"name":"v1","labels":{"a":"b"}}],"trafficPolicy":{"tls":{"mode":"MUTUAL","clientCertificate":"/c","privateKey":"/k","caCertificates":"/r","sni":"a","subjectAltNames":["a"]},
			"loadBalancer":{"consistentHash":{"httpCookie":{"name":"c","path":"/","ttl":"1s"}}}}}`},
		{"DestinationRule", `{"host":"a.example.com","trafficPolicy":{"tls":{"mode":"SIMPLE","credentialName":"c"},"loadBalancer":{"consistentHash":{"httpHeaderName":"x"}}}}`},
		{"DestinationRule", `{"host":"a.example.com","trafficPolicy":{"loadBalancer":{"consistentHash":{"httpQueryParameterName":"x"}}}}`},
		{"Gateway", `{"selector":{"app":"edge"},"servers":[{"name":"n","port":{"number":443,"name":"https","protocol":"HTTPS"},"hosts":["a.example.com"],
			"tls":{"mode":"MUTUAL","credentialName":"c","subjectAltNames":["a"]}}]}`},
	} {
		schema := schemaOf(t, o.kind)
		base := spec(t, o.text, schema.NewSpec())
		if _, err := schema.Check(lengthConfig(schema, base)); err != nil {
			t.Fatalf("%s: %v", o.text, err)
		}
		for _, n := range []int{300, 20_000} {
			for i := 0; ; i++ {
				long := proto.Clone(base)
				at := 0
				path := lengthenText(long.ProtoReflect(), i, n, &at)
				if path == "" {
					break
				}
				if _, err := schema.Check(lengthConfig(schema, long)); err != nil {
					continue
				}
				count++
				for _, failed := range leftOutWith(t, o.kind, long) {
					t.Errorf("%s, %s of %d bytes is accepted: %.300s", o.kind, path, n, failed)
				}
			}
		}
	}
	if count < 50 {
		t.Errorf("only %d texts are accepted", count)
	}
}

// leftOutWith returns what is left out of what clients are sent with an object and those
// that go with it.
func leftOutWith(t *testing.T, kind string, long proto.Message) []string {
	t.Helper()
	var configs configList
	for other, g := range growing {
		key := "shop/x"
		if other == "Gateway" {
			key = "ingress/edge"
		}
		text := proto.Clone(g.spec)
		switch other {
		case kind:
			text = long
		case "Sidecar":
			continue
		default:
			spec(t, g.text, text)
		}
		configs.add(g.kind, key, text)
	}
	plane := stage(t, traffic.Options{}, configs, growthServices())
	defer plane.close()
	var out []string
	for _, n := range []*core.Node{edge(), in("sidecar", "shop"), in("grpc", "shop")} {
		for _, typeURL := range []string{envoy.ListenerType, envoy.RouteType, envoy.ClusterType} {
			names := []string{"*"}
			switch {
			case isGRPC(n):
				names = []string{"a.example.com:80", "outbound|80||a.example.com"}
			case typeURL == envoy.RouteType:
				names = []string{"*", "80", "http.80"}
			}
			for _, failed := range plane.ask(n, typeURL, names...).failed {
				out = append(out, failed)
			}
		}
	}
	return out
}

// everyText is a VirtualService with most of the texts that there are.
const everyText = `{"hosts":["a.example.com"],"gateways":["mesh","ingress/edge"],"http":[{"name":"n","match":[{"name":"m","uri":{"prefix":"/a"},"method":{"exact":"GET"},
	"authority":{"exact":"a"},"scheme":{"exact":"https"},"headers":{"x":{"exact":"y"}},"withoutHeaders":{"z":{"prefix":"y"}},"queryParams":{"q":{"exact":"v"}},"statPrefix":"s"}],
	"rewrite":{"uri":"/b","authority":"c"},"retries":{"attempts":1,"retryOn":"5xx"},"corsPolicy":{"allowOrigins":[{"exact":"x"}],"allowHeaders":["h"],"exposeHeaders":["e"]},
	"headers":{"request":{"set":{"s":"v"},"add":{"a":"v"},"remove":["r"]},"response":{"set":{"s":"v"}}},"mirrors":[{"destination":{"host":"b.example.com"}}],
	"route":[{"destination":{"host":"a.example.com","subset":"v1"},"headers":{"request":{"set":{"s":"v"}}},"weight":1},{"destination":{"host":"b.example.com"},"weight":1}]}],
	"tls":[{"match":[{"sniHosts":["a.example.com"]}],"route":[{"destination":{"host":"a.example.com"}}]}]}`

func lengthConfig(schema configstore.Schema, spec proto.Message) configstore.Config {
	return configstore.Config{Meta: configstore.Meta{GroupVersionKind: schema.GroupVersionKind, Namespace: "shop", Name: "long"}, Spec: spec}
}

// lengthenText makes the text at a position n bytes longer, the keys of maps among them,
// and returns its path; empty: there are not so many.
func lengthenText(m protoreflect.Message, position, n int, at *int) string {
	path := ""
	longer := func(s string) protoreflect.Value { return protoreflect.ValueOfString(s + strings.Repeat("x", n)) }
	here := func() bool { *at++; return *at == position+1 }
	fields := m.Descriptor().Fields()
	for i := 0; i < fields.Len() && path == ""; i++ {
		f := fields.Get(i)
		switch {
		case !m.Has(f):
		case f.IsMap():
			entries := m.Mutable(f).Map()
			entries.Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
				if here() {
					entries.Clear(k)
					entries.Set(longer(k.String()).MapKey(), v)
					path = f.TextName() + "{key}"
				} else if f.MapValue().Message() == nil && f.MapValue().Kind() == protoreflect.StringKind {
					if here() {
						entries.Set(k, longer(v.String()))
						path = f.TextName() + "[value]"
					}
				} else if f.MapValue().Message() != nil {
					path = lengthenText(v.Message(), position, n, at)
				}
				return false
			})
		case f.IsList() && f.Message() != nil:
			for j := 0; j < m.Get(f).List().Len() && path == ""; j++ {
				path = lengthenText(m.Mutable(f).List().Get(j).Message(), position, n, at)
			}
		case f.IsList() && f.Kind() == protoreflect.StringKind:
			if here() {
				m.Mutable(f).List().Set(0, longer(m.Get(f).List().Get(0).String()))
				path = f.TextName()
			}
		case f.Message() != nil:
			if path = lengthenText(m.Mutable(f).Message(), position, n, at); path != "" {
				path = f.TextName() + "." + path
			}
		case f.Kind() == protoreflect.StringKind:
			if here() {
				m.Set(f, longer(m.Get(f).String()))
				path = f.TextName()
			}
		}
	}
	return path
}
