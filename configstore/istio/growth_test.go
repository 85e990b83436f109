// SPDX-License-Identifier: Apache-2.0

package istio_test

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/internal/test/tier"
)

// maxFindings bounds the text of all findings of one object.
const maxFindings = 1 << 18

// BenchmarkGrowth doubles every string and every list of every kind, each by itself,
// in a valid spec. The time for a byte of the object stays the same where a
// validator is linear: ns/byte is the number to read.
func BenchmarkGrowth(b *testing.B) {
	for _, schema := range istio.Schemas().All() {
		for _, g := range growths(b, schema) {
			for _, n := range []int{1 << 10, 1 << 11, 1 << 12, 1 << 13} {
				c := configOf(schema, g.grow(n))
				size := float64(proto.Size(c.Spec))
				b.Run(fmt.Sprintf("%s/%s/n=%d", schema.GroupVersionKind.Kind, g.path, n), func(b *testing.B) {
					b.ReportAllocs()
					for b.Loop() {
						_, _ = schema.Check(c)
					}
					b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/size, "ns/byte")
				})
			}
		}
	}
}

// TestGrowth makes every string of a valid spec a megabyte long, one at a time, and every list and
// map 3,000 elements. The findings are bounded, and a validator that is quadratic in a string does
// not finish here.
func TestGrowth(t *testing.T) {
	t.Parallel()
	length := 1 << 20
	if !tier.Full() {
		length >>= 3
	}
	for _, schema := range istio.Schemas().All() {
		all := growths(t, schema)
		if len(all) == 0 {
			t.Errorf("nothing grows in %s", schema.GroupVersionKind.Kind)
		}
		for _, g := range all {
			n := 3000
			if g.isString {
				n = length
			}
			c := configOf(schema, g.grow(n))
			warnings, err := schema.Check(c)
			said := 0
			for _, w := range warnings {
				said += len(w.String())
			}
			if err != nil {
				said += len(err.Error())
			}
			if said > maxFindings || len(warnings) > configstore.MaxViolations+1 {
				t.Errorf("%s: %d findings of %d bytes in all", g.path, len(warnings), said)
			}
		}
	}
}

// growth is a place in a spec that can be given any size.
type growth struct {
	path     string
	isString bool
	grow     func(n int) proto.Message
}

// growths returns the strings, keys of maps, lists and maps that are set in the
// valid specs of a kind.
func growths(tb testing.TB, schema configstore.Schema) []growth {
	tb.Helper()
	var out []growth
	for variant, base := range specs(tb, schema.GroupVersionKind) {
		count := 0
		visitGrowing(base.ProtoReflect(), "spec", func(path string, isString bool, _ func(int)) {
			at := count
			count++
			out = append(out, growth{path: fmt.Sprintf("%d.%s", variant, path), isString: isString, grow: func(n int) proto.Message {
				spec, i := proto.Clone(base), 0
				visitGrowing(spec.ProtoReflect(), "spec", func(_ string, _ bool, grow func(int)) {
					if i++; i == at+1 {
						grow(n)
					}
				})
				return spec
			}})
		})
	}
	return out
}

// visitGrowing calls visit for all that can grow in a message, in a fixed order.
func visitGrowing(m protoreflect.Message, path string, visit func(path string, isString bool, grow func(n int))) {
	if strings.HasPrefix(string(m.Descriptor().FullName()), "google.protobuf.") {
		return
	}
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		fd := fields.Get(i)
		at := path + "." + fd.JSONName()
		switch {
		case !m.Has(fd):
		case fd.IsMap():
			visitMap(m, fd, at, visit)
		case fd.IsList():
			list := m.Mutable(fd).List()
			visit(at, false, func(n int) { growList(list, n) })
			if fd.Kind() == protoreflect.StringKind {
				visit(at+"[0]", true, func(n int) { list.Set(0, long(list.Get(0).String(), n)) })
			}
			if fd.Message() != nil {
				visitGrowing(list.Get(0).Message(), at+"[0]", visit)
			}
		case fd.Message() != nil:
			visitGrowing(m.Mutable(fd).Message(), at, visit)
		case fd.Kind() == protoreflect.StringKind:
			visit(at, true, func(n int) { m.Set(fd, long(m.Get(fd).String(), n)) })
		}
	}
}

func visitMap(m protoreflect.Message, fd protoreflect.FieldDescriptor, at string, visit func(string, bool, func(int))) {
	if fd.MapKey().Kind() != protoreflect.StringKind {
		return
	}
	entries := m.Mutable(fd).Map()
	var first protoreflect.MapKey
	entries.Range(func(key protoreflect.MapKey, _ protoreflect.Value) bool {
		if !first.IsValid() || key.String() < first.String() {
			first = key
		}
		return true
	})
	value := entries.Get(first)
	visit(at, false, func(n int) {
		for i := range n {
			entries.Set(protoreflect.ValueOfString(fmt.Sprintf("%s%d", first.String(), i)).MapKey(), value)
		}
	})
	visit(at+"[key]", true, func(n int) { entries.Set(long(first.String(), n).MapKey(), value) })
	switch {
	case fd.MapValue().Kind() == protoreflect.StringKind:
		visit(at+"[value]", true, func(n int) { entries.Set(first, long(value.String(), n)) })
	case fd.MapValue().Message() != nil:
		visitGrowing(value.Message(), at+"[value]", visit)
	}
}

// growList adds elements that are like the first; strings differ, as hosts do.
func growList(list protoreflect.List, n int) {
	first := list.Get(0)
	for i := list.Len(); i < n; i++ {
		switch value := first.Interface().(type) {
		case string:
			list.Append(protoreflect.ValueOfString(fmt.Sprintf("a%d.%s", i, value)))
		case protoreflect.Message:
			list.Append(protoreflect.ValueOfMessage(proto.Clone(value.Interface()).ProtoReflect()))
		default:
			list.Append(first)
		}
	}
}

func long(s string, n int) protoreflect.Value {
	return protoreflect.ValueOfString(strings.Repeat(s+"a", n/(len(s)+1)+1))
}

func configOf(schema configstore.Schema, spec proto.Message) configstore.Config {
	return configstore.Config{
		Meta: configstore.Meta{GroupVersionKind: schema.GroupVersionKind, Name: "a", Namespace: "ns"},
		Spec: spec,
	}
}

// TestLongStrings holds the shapes of strings that are long in combination with another field. Each
// is quadratic for a validator that looks at all parts.
func TestLongStrings(t *testing.T) {
	t.Parallel()
	length := 1 << 21
	if !tier.Full() {
		length >>= 3
	}
	long := strings.Repeat("a", length)
	distribute := func(to map[string]uint32) proto.Message {
		return &networking.DestinationRule{Host: "a.example.com", TrafficPolicy: &networking.TrafficPolicy{
			LoadBalancer: &networking.LoadBalancerSettings{LocalityLbSetting: &networking.LocalityLoadBalancerSetting{
				Distribute: []*networking.LocalityLoadBalancerSetting_Distribute{{From: long, To: to}},
			}},
		}}
	}
	prefix := func(path string) *networking.HTTPRoute {
		return &networking.HTTPRoute{
			Match: []*networking.HTTPMatchRequest{{Uri: &networking.StringMatch{MatchType: &networking.StringMatch_Prefix{Prefix: path}}}},
			Route: []*networking.HTTPRouteDestination{{Destination: &networking.Destination{Host: "a"}}},
		}
	}
	for name, c := range map[string]struct {
		kind configstore.GroupVersionKind
		spec proto.Message
		bad  bool
	}{
		"localities":                  {istio.DestinationRule, distribute(map[string]uint32{long: 100}), false},
		"localities with a wildcard":  {istio.DestinationRule, distribute(map[string]uint32{long: 50, "b*": 50}), false},
		"localities below a wildcard": {istio.DestinationRule, distribute(map[string]uint32{long: 50, "aa*": 50}), true},
		"paths":                       {istio.VirtualService, &networking.VirtualService{Hosts: []string{"a"}, Http: []*networking.HTTPRoute{prefix("/b"), prefix("/" + long)}}, false},
		"hosts": {istio.VirtualService, &networking.VirtualService{
			Hosts: []string{"*.example.com", long + ".example.com"}, Http: []*networking.HTTPRoute{prefix("/")},
		}, true},
	} {
		schema, _ := istio.Schemas().Find(c.kind)
		if _, err := schema.Check(configOf(schema, c.spec)); (err != nil) != c.bad || err != nil && len(err.Error()) > 4096 {
			t.Errorf("%s: %.1000v", name, err)
		}
	}
}
