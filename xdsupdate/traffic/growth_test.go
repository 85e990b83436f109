// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"fmt"
	"runtime"
	"testing"

	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/internal/test/tier"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// linear is how many times as much may be allocated for four times as many: sixteen would
// be quadratic.
const linear = 7

// growthSize is how long a field is that is made four times as long.
func growthSize() int {
	if tier.Full() {
		return 120
	}
	return 60
}

// TestGrowth makes each repeated field of each kind four times as long, and counts what is
// allocated by reading the object, building everything of it, and looking for what has no
// effect.
func TestGrowth(t *testing.T) {
	for name, g := range growing {
		for _, path := range repeatedFields(spec(t, g.text, proto.Clone(g.spec)).ProtoReflect(), nil) {
			checkGrowth(t, name+" "+pathText(path), func(n int) {
				s := stage(t, traffic.Options{}, growthObjects(t, name, path, n), growthServices())
				s.policies.Ineffective()
				buildEverything(s)
			})
		}
	}
}

// TestGrowthOfNumbers is the same of how many objects there are for one host: from the
// first push on, and in one batch after it.
func TestGrowthOfNumbers(t *testing.T) {
	for name, add := range map[string]func(l *configList, i int){
		"DestinationRules": func(l *configList, i int) {
			l.add(istio.DestinationRule, fmt.Sprintf("shop/r%d", i), &networking.DestinationRule{
				Host: "a.example.com", Subsets: []*networking.Subset{{Name: fmt.Sprint("v", i)}},
			})
		},
		"DestinationRules for different namespaces": func(l *configList, i int) {
			l.add(istio.DestinationRule, fmt.Sprintf("shop/r%d", i), &networking.DestinationRule{
				Host: "a.example.com", ExportTo: []string{fmt.Sprint("n", i), "shop"},
			})
		},
		"VirtualServices": func(l *configList, i int) {
			l.add(istio.VirtualService, fmt.Sprintf("shop/v%d", i), toCart("/", []string{"mesh", "ingress/edge"}, "a.example.com"))
		},
		"Gateways": func(l *configList, i int) {
			l.add(istio.Gateway, fmt.Sprintf("ingress/g%d", i), gatewayOf(serverOf(80, "HTTP", "", "a.example.com")))
		},
	} {
		objects := func(n int) (configs configList) {
			for i := range n {
				add(&configs, i)
			}
			return configs
		}
		checkGrowth(t, name, func(n int) {
			buildEverything(stage(t, traffic.Options{}, objects(n), growthServices()))
		})
		checkGrowth(t, name+" in a batch", func(n int) {
			s := stage(t, traffic.Options{}, nil, growthServices())
			s.applyAll(objects(n))
			s.applied()
			buildEverything(s)
		})
	}
}

func checkGrowth(t *testing.T, name string, build func(n int)) {
	t.Helper()
	n := growthSize()
	one, four := allocated(func() { build(n) }), allocated(func() { build(4 * n) })
	if times := float64(four) / float64(one); times > linear {
		t.Errorf("%s: %d bytes for %d, %.1f times as much for %d", name, one, n, times, 4*n)
	}
}

// allocated returns how many bytes a function allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
