// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"fmt"
	"slices"
	"testing"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// growing are objects of which each repeated field is made longer.
var growing = map[string]struct {
	kind configstore.GroupVersionKind
	spec proto.Message
	text string
}{
	"VirtualService": {istio.VirtualService, &networking.VirtualService{}, `{"hosts":["a.example.com"],"gateways":["mesh","ingress/edge"],
		"http":[{"match":[{"uri":{"prefix":"/a"}}],"mirrors":[{"destination":{"host":"a.example.com"}}],
		"route":[{"destination":{"host":"a.example.com"},"weight":1},{"destination":{"host":"b.example.com"},"weight":1}],
		"corsPolicy":{"allowOrigins":[{"exact":"x"}]},"headers":{"request":{"remove":["x-a"]}}}],
		"tls":[{"match":[{"sniHosts":["a.example.com"]}],"route":[{"destination":{"host":"a.example.com"}}]}]}`},
	"DestinationRule": {istio.DestinationRule, &networking.DestinationRule{}, `{"host":"a.example.com","subsets":[{"name":"v1"}],
		"trafficPolicy":{"portLevelSettings":[{"port":{"number":80}}],"loadBalancer":{"localityLbSetting":{"failoverPriority":["x"]}},
		"outlierDetection":{"consecutive5xxErrors":3}}}`},
	"Gateway": {istio.Gateway, &networking.Gateway{}, `{"selector":{"app":"edge"},"servers":[{"port":{"number":80,"name":"http","protocol":"HTTP"},"hosts":["*.example.com"]}]}`},
	"Sidecar": {istio.Sidecar, &networking.Sidecar{}, `{"egress":[{"hosts":["*/a.example.com"]}]}`},
}

// BenchmarkGrowth builds everything that a gateway, a sidecar and a gRPC client are sent,
// with one field of one object n times as long. Where building is linear, the time for an
// element stays the same: ns/element is the number to read.
func BenchmarkGrowth(b *testing.B) {
	for name, g := range growing {
		for _, path := range repeatedFields(spec(b, g.text, proto.Clone(g.spec)).ProtoReflect(), nil) {
			for _, n := range []int{500, 1000, 2000, 4000} {
				b.Run(fmt.Sprintf("%s/%s/n=%d", name, pathText(path), n), func(b *testing.B) {
					objects := growthObjects(b, name, path, n)
					b.ReportAllocs()
					for b.Loop() {
						buildEverything(stage(b, traffic.Options{}, objects, growthServices()))
					}
					b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/element")
				})
			}
		}
	}
}

func growthServices() *population {
	a, c := testService("shop", "a.example.com", 80, 90), testService("shop", "b.example.com", 80)
	a.Resolution, c.Resolution = registry.ClientSideLB, registry.ClientSideLB
	return populate(a, c)
}

// growthObjects are all growing objects, one of them with a longer field.
func growthObjects(tb testing.TB, name string, path []protoreflect.FieldDescriptor, n int) configList {
	tb.Helper()
	var configs configList
	for other, g := range growing {
		m := spec(tb, g.text, proto.Clone(g.spec))
		if other == name {
			lengthen(m.ProtoReflect(), path, n)
		}
		key := map[string]string{"Gateway": "ingress/edge"}[other]
		if key == "" {
			key = "shop/x"
		}
		configs.add(g.kind, key, m)
	}
	return configs
}

// buildEverything connects a gateway, a sidecar and a gRPC client that ask for all there is,
// and ends the scene.
func buildEverything(s *scene) {
	s.t.Helper()
	for _, n := range []*core.Node{edge(), in("sidecar", "shop"), in("grpc", "shop")} {
		for _, typeURL := range modelTypes {
			names := []string{"*"}
			if isGRPC(n) {
				names = []string{"a.example.com:80", "outbound|80||a.example.com"}
			}
			s.ask(n, typeURL, names...)
		}
	}
	s.close()
}

// repeatedFields returns the paths to the lists that a message has.
func repeatedFields(m protoreflect.Message, at []protoreflect.FieldDescriptor) [][]protoreflect.FieldDescriptor {
	var out [][]protoreflect.FieldDescriptor
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		path := append(slices.Clip(at), f)
		switch {
		case f.IsList():
			out = append(out, path)
			if f.Message() != nil {
				out = append(out, repeatedFields(v.List().Get(0).Message(), path)...)
			}
		case f.Message() != nil && !f.IsMap():
			out = append(out, repeatedFields(v.Message(), path)...)
		}
		return true
	})
	return out
}

func pathText(path []protoreflect.FieldDescriptor) string {
	text := ""
	for _, f := range path {
		text += "." + f.JSONName()
	}
	return text[1:]
}

// lengthen makes the list at a path n long: of its first element, with other texts and
// port numbers.
func lengthen(m protoreflect.Message, path []protoreflect.FieldDescriptor, n int) {
	f := path[0]
	if len(path) > 1 {
		if f.IsList() {
			lengthen(m.Get(f).List().Get(0).Message(), path[1:], n)
		} else {
			lengthen(m.Get(f).Message(), path[1:], n)
		}
		return
	}
	list := m.Mutable(f).List()
	for i := list.Len(); i < n; i++ {
		if f.Message() == nil {
			list.Append(varied(list.Get(0), f, i))
			continue
		}
		element := proto.Clone(list.Get(0).Message().Interface()).ProtoReflect()
		vary(element, i)
		list.Append(protoreflect.ValueOfMessage(element))
	}
}

func vary(m protoreflect.Message, i int) {
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.IsMap():
		case f.IsList():
			for j := range v.List().Len() {
				if f.Message() != nil {
					vary(v.List().Get(j).Message(), i)
				} else {
					v.List().Set(j, varied(v.List().Get(j), f, i))
				}
			}
		case f.Message() != nil:
			vary(v.Message(), i)
		case f.Name() != "protocol":
			m.Set(f, varied(v, f, i))
		}
		return true
	})
}

func varied(v protoreflect.Value, f protoreflect.FieldDescriptor, i int) protoreflect.Value {
	switch f.Kind() {
	case protoreflect.StringKind:
		text := v.String()
		if text[0] == '*' {
			return protoreflect.ValueOfString(fmt.Sprintf("*.x%d%s", i, text[1:]))
		}
		if text[0] == '/' {
			return protoreflect.ValueOfString(fmt.Sprintf("%s/%d", text, i))
		}
		return protoreflect.ValueOfString(fmt.Sprintf("x%d-%s", i, text))
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(1000 + uint32(i))
	default:
		return v
	}
}
