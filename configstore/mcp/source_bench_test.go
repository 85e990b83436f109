// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"fmt"
	"strconv"
	"testing"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/memory"
)

// BenchmarkOneChanged is the work of a source for one changed object of many, from the bytes of the
// response to the reply. "all" is the first response.
func BenchmarkOneChanged(b *testing.B) {
	for _, count := range []int{100, 10000} {
		all := make([]*anypb.Any, count)
		for i := range all {
			all[i] = encoded(b, entry("default", "svc-"+strconv.Itoa(i)))
		}
		changed := func(i int) *anypb.Any {
			return encoded(b, entry("default", "svc-7", "host-"+strconv.Itoa(i%2)+".example.com"))
		}
		start := func() *Source {
			source := NewSource(nil, memory.Make(istio.Schemas()), only(istio.ServiceEntry))
			source.handle(sotwResponse(b, sotwBytes(b, all)))
			return source
		}
		b.Run(fmt.Sprintf("delta/%d", count), func(b *testing.B) {
			source := start()
			var responses [2][]byte
			for i := range responses {
				data, err := proto.Marshal(&discovery.DeltaDiscoveryResponse{TypeUrl: serviceEntryURL, Nonce: "1", Resources: []*discovery.Resource{
					{Name: "default/svc-7", Version: strconv.Itoa(i), Resource: changed(i)},
				}})
				if err != nil {
					b.Fatal(err)
				}
				responses[i] = data
			}
			measure(b, source, func(i int) *response { return deltaResponse(b, responses[i%2]) })
		})
		b.Run(fmt.Sprintf("sotw/%d", count), func(b *testing.B) {
			source := start()
			var responses [2][]byte
			for i := range responses {
				all[7] = changed(i)
				responses[i] = sotwBytes(b, all)
			}
			measure(b, source, func(i int) *response { return sotwResponse(b, responses[i%2]) })
		})
		b.Run(fmt.Sprintf("all/%d", count), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				start()
			}
		})
	}
}

// BenchmarkOneChangedBesideBad is the same by delta, with rejected objects in the source.
func BenchmarkOneChangedBesideBad(b *testing.B) {
	for _, count := range []int{0, 100, 10000} {
		b.Run(strconv.Itoa(count), func(b *testing.B) {
			source := NewSource(nil, memory.Make(istio.Schemas()), only(istio.ServiceEntry))
			source.handle(deltaOfBad(b, count))
			responses := [2]*discovery.DeltaDiscoveryResponse{}
			for i := range responses {
				responses[i] = delta(b, "1", nil, versioned("one", strconv.Itoa(i), "host-"+strconv.Itoa(i)+".example.com"))
			}
			measure(b, source, func(i int) *response { return fromDelta(responses[i%2]) })
		})
	}
}

// deltaOfBad is a response with objects that are not valid.
func deltaOfBad(tb testing.TB, count int) *response {
	tb.Helper()
	out := &discovery.DeltaDiscoveryResponse{TypeUrl: serviceEntryURL, Nonce: "1"}
	for i := range count {
		c := entry("default", "bad-"+strconv.Itoa(i))
		c.Spec.(*networking.ServiceEntry).Ports[0].Number = 70000
		out.Resources = append(out.Resources, &discovery.Resource{Name: resourceName(c.Name, c.Namespace), Resource: encoded(tb, c)})
	}
	return fromDelta(out)
}

// TestOneChangedBesideBad: the cost of one changed object is independent of the number of rejected
// ones, which are all in the report.
func TestOneChangedBesideBad(t *testing.T) {
	allocs := func(bad int) float64 {
		source := NewSource(nil, newStore(), only(istio.ServiceEntry))
		source.handle(deltaOfBad(t, bad))
		if n := len(source.Report().Errors); n != bad {
			t.Errorf("%d errors in the report, want %d", n, bad)
		}
		i := 0
		return testing.AllocsPerRun(20, func() {
			i++
			source.handle(fromDelta(delta(t, "1", nil, versioned("one", "1", fmt.Sprintf("host-%d.example.com", i)))))
		})
	}
	if few, many := allocs(1), allocs(1000); many > 2*few+20 {
		t.Errorf("%v allocations beside 1 bad object, %v beside 1000", few, many)
	}
}

func measure(b *testing.B, source *Source, next func(i int) *response) {
	b.Helper()
	b.ReportAllocs()
	before := source.store.(*memory.Store).Revision()
	i := 0
	for b.Loop() {
		source.handle(next(i))
		i++
	}
	if got := source.store.(*memory.Store).Revision() - before; got != uint64(i) && got != uint64(i)-1 {
		b.Fatalf("%d changes of %d responses", got, i)
	}
}

func sotwBytes(tb testing.TB, all []*anypb.Any) []byte {
	tb.Helper()
	data, err := proto.Marshal(&discovery.DiscoveryResponse{TypeUrl: serviceEntryURL, VersionInfo: "1", Nonce: "1", Resources: all})
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

func sotwResponse(tb testing.TB, data []byte) *response {
	tb.Helper()
	var m discovery.DiscoveryResponse
	if err := proto.Unmarshal(data, &m); err != nil {
		tb.Fatal(err)
	}
	return fromSotW(&m)
}

func deltaResponse(tb testing.TB, data []byte) *response {
	tb.Helper()
	var m discovery.DeltaDiscoveryResponse
	if err := proto.Unmarshal(data, &m); err != nil {
		tb.Fatal(err)
	}
	return fromDelta(&m)
}

// TestOneChangedIsDecodedOnce: of a SotW response only resources with changed bytes are decoded.
func TestOneChangedIsDecodedOnce(t *testing.T) {
	t.Parallel()
	all := make([]*anypb.Any, 1000)
	for i := range all {
		all[i] = encoded(t, entry("default", "svc-"+strconv.Itoa(i)))
	}
	source := NewSource(nil, newStore(), only(istio.ServiceEntry))
	k := source.kinds[0]
	decoded := func() int {
		n := 0
		dirty := k.take(sotwResponse(t, sotwBytes(t, all)), func(o *sourceObject) {
			n++
			source.decode(o)
		})
		source.write(dirty)
		return n
	}
	if n := decoded(); n != 1000 {
		t.Errorf("%d objects of 1000 were decoded", n)
	}
	if n := decoded(); n != 0 {
		t.Errorf("%d objects were decoded, of which none has changed", n)
	}
	all[7] = encoded(t, entry("default", "svc-7", "new.example.com"))
	if n := decoded(); n != 1 {
		t.Errorf("%d objects were decoded, of which one has changed", n)
	}
	if got := source.store.Get(istio.ServiceEntry, "svc-7", "default"); got == nil || got.Generation != 2 {
		t.Errorf("stored %v", got)
	}
	if got := len(source.store.List(istio.ServiceEntry, configstore.NamespaceAll)); got != 1000 {
		t.Errorf("%d objects are stored", got)
	}
}
