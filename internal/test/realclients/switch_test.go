// SPDX-License-Identifier: Apache-2.0

package realclients

import (
	"flag"
	"fmt"
	"testing"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
)

var switches = flag.Int("switches", 12, "how often TestSwitches moves a route in each scenario")

// TestSwitches moves the route of a service, again and again, to clusters that the client
// does not know: no call fails.
func TestSwitches(t *testing.T) {
	for name, scenario := range map[string]func(s *switching, n int){
		"service": (*switching).service,
		"writes":  (*switching).writes,
		"subset":  (*switching).subset,
		"weights": (*switching).weights,
	} {
		t.Run(name, func(t *testing.T) {
			eachClient(t, func(s *scene) {
				backends := []*networking.WorkloadEntry{s.backend("even").entry(), s.backend("odd").entry()}
				for i, version := range []string{"even", "odd"} {
					backends[i].Labels = map[string]string{"version": version}
				}
				w := &switching{scene: s, backends: backends}
				w.p = s.trafficPlane(entry(backends...), w.named(0), w.rules(0), w.route(`"host": "s0.example.com"`))
				w.c = s.call(w.p, target)
				w.c.follow("even")
				w.c.counts = true
				for n := 1; n <= *switches; n++ {
					scenario(w, n)
				}
				w.p.Applied()
				w.p.Accepted()
				if w.c.failed > 0 {
					s.Errorf("%d calls failed, the last one: %s", w.c.failed, w.c.failure)
				}
			})
		})
	}
}

// switching is a service whose route moves between two backends.
type switching struct {
	*scene
	p        *plane
	c        *caller
	backends []*networking.WorkloadEntry
}

func (w *switching) backend(n int) string { return []string{"even", "odd"}[n%2] }

// named is a service of the nth backend.
func (w *switching) named(n int) configstore.Config {
	c := edited(func(spec *networking.ServiceEntry) {
		spec.Hosts = []string{fmt.Sprintf("s%d.example.com", n)}
	}, w.backends[n%2])
	c.Name = fmt.Sprint("s", n)
	return c
}

// rules is a DestinationRule with one subset, which has the nth backend.
func (w *switching) rules(n int) configstore.Config {
	c := w.subsets()
	c.Spec.(*networking.DestinationRule).Subsets = []*networking.Subset{
		{Name: fmt.Sprint("n", n), Labels: map[string]string{"version": w.backend(n)}},
	}
	return c
}

func (w *switching) route(destination string) configstore.Config {
	return w.virtualService(`{"route": [{"destination": {` + destination + `}}]}`)
}

func upsert(c configstore.Config) configstore.Mutation {
	return configstore.Mutation{Op: configstore.OpUpsert, Config: c}
}

func remove(c configstore.Config) configstore.Mutation {
	return configstore.Mutation{Op: configstore.OpDelete, Config: c}
}

func (w *switching) apply(all ...configstore.Mutation) {
	w.Helper()
	if _, err := w.p.Configs.Apply(all...); err != nil {
		w.Fatal(err)
	}
}

// service moves to a new service; the old one goes in the same batch.
func (w *switching) service(n int) {
	w.apply(upsert(w.named(n)), upsert(w.route(fmt.Sprintf(`"host": "s%d.example.com"`, n))),
		remove(w.named(n-1)))
	w.c.follow(w.backend(n))
}

// writes is service in writes right after one another.
func (w *switching) writes(n int) {
	w.apply(upsert(w.named(n)))
	w.apply(upsert(w.route(fmt.Sprintf(`"host": "s%d.example.com"`, n))))
	w.apply(remove(w.named(n - 1)))
	w.c.follow(w.backend(n))
}

// subset moves to a new subset; the old one goes in the same batch.
func (w *switching) subset(n int) {
	w.apply(upsert(w.rules(n)), upsert(w.route(fmt.Sprintf(`"host": %q, "subset": "n%d"`, host, n))))
	w.c.follow(w.backend(n))
}

// weights shifts to a new service in two steps; the old one goes with the second.
func (w *switching) weights(n int) {
	share := func(n, weight int) string {
		return fmt.Sprintf(`{"destination": {"host": "s%d.example.com"}, "weight": %d}`, n, weight)
	}
	w.apply(upsert(w.named(n)), upsert(w.virtualService(`{"route": [`+share(n-1, 1)+","+share(n, 1)+`]}`)))
	w.c.follow("even", "odd")
	w.apply(upsert(w.virtualService(`{"route": [`+share(n, 1)+`]}`)),
		remove(w.named(n-1)))
	w.c.follow(w.backend(n))
}
