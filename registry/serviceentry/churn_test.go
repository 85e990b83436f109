// SPDX-License-Identifier: Apache-2.0

package serviceentry_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/internal/test/histories"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/serviceentry"
	"github.com/pilotkit/pilotkit/registry/serviceentry/explain"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// TestChurn makes random changes to few names, so that everything collides, and
// verifies the registry against its stores after each step. The recorder checks
// that every report of endpoints changes something.
func TestChurn(t *testing.T) {
	t.Parallel()
	for _, seed := range histories.Seeds(t, 5) {
		for _, deltas := range []bool{false, true} {
			t.Run(fmt.Sprintf("seed=%d,deltas=%t", seed, deltas), func(t *testing.T) {
				t.Parallel()
				newChurn(t, seed, deltas).run(100)
			})
		}
	}
}

type churn struct {
	*system
	random *rand.Rand
}

func newChurn(t *testing.T, seed uint64, deltas bool) *churn {
	t.Helper()
	return &churn{
		random: rand.New(rand.NewPCG(seed, 1)),
		system: newUncheckedSystem(t, serviceentry.Options{
			NetworkOf: func(address string, _ registry.Labels) string {
				if strings.HasPrefix(address, "10.") {
					return "ten"
				}
				return ""
			},
		}, func(r *recorder) xdsupdate.XDSUpdater {
			if deltas {
				return deltaRecorder{r}
			}
			return r
		}),
	}
}

func (c *churn) run(steps int) {
	for step := range steps {
		var did []string
		for range 1 + c.random.IntN(3) {
			did = append(did, c.change())
		}
		c.cache.Drain()
		what := fmt.Sprintf("step %d (%s)", step, strings.Join(did, "; "))
		for _, d := range explain.Verify(c.registry) {
			c.t.Errorf("after %s: %s", what, d)
		}
		c.checkCalls(what)
		if c.t.Failed() {
			c.t.FailNow()
		}
	}
}

// checkCalls compares what the updater was called with and what the registry shows.
func (c *churn) checkCalls(what string) {
	c.recorder.take()
	shown := map[string][]*registry.Endpoint{}
	for _, s := range c.registry.Services() {
		if got := c.registry.GetService(s.Hostname); got == nil {
			c.t.Errorf("after %s: GetService(%s) = nil", what, s.Hostname)
		}
		var list []*registry.Endpoint
		for _, i := range c.registry.InstancesByPort(s, 0) {
			list = append(list, i.Endpoint)
		}
		shown[s.Key()] = list
	}
	for key, list := range shown {
		if !slices.Equal(list, c.recorder.endpoints[key]) {
			c.t.Errorf("after %s: %s has %s, was reported with %s", what, key, brief(list), brief(c.recorder.endpoints[key]))
		}
	}
}

var (
	churnNames     = []string{"a", "b", "c"}
	churnHosts     = []string{"h1.com", "h2.com", "*.h3.com"}
	churnAddresses = []string{"10.0.0.1", "10.0.0.2", "2001:db8::1", "vm.example.org"}
	churnApps      = []string{"web", "db"}
)

func (c *churn) pick(from []string) string { return from[c.random.IntN(len(from))] }

func (c *churn) some(from []string) []string {
	out := slices.Clone(from)
	c.random.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out[:1+c.random.IntN(len(out)-1)]
}

func (c *churn) labels() map[string]string {
	out := map[string]string{}
	for _, k := range []string{"app", "tier"} {
		if c.random.IntN(3) > 0 {
			out[k] = c.pick(churnApps)
		}
	}
	return out
}

func (c *churn) change() string {
	ns := []string{"ns", "other"}[c.random.IntN(2)]
	name := c.pick(churnNames)
	switch c.random.IntN(10) {
	case 0, 1, 2:
		config := entry(name, c.editEntry, c.pick(churnHosts))
		config.Namespace = ns
		config.CreationTimestamp = time.Unix(int64(c.random.IntN(3)), 0)
		c.write(config)
		return "write ServiceEntry " + ns + "/" + name
	case 3:
		_ = c.cache.Delete(istio.ServiceEntry, name, ns, nil)
		return "delete ServiceEntry " + ns + "/" + name
	case 4, 5:
		config := workloadEntry(name, c.pick(churnAddresses), c.labels())
		config.Namespace = ns
		if c.random.IntN(4) == 0 {
			config = checked(config, "False")
		}
		c.write(config)
		return "write WorkloadEntry " + ns + "/" + name
	case 6:
		_ = c.cache.Delete(istio.WorkloadEntry, name, ns, nil)
		return "delete WorkloadEntry " + ns + "/" + name
	case 7:
		p := c.pod(ns, name)
		c.registry.WorkloadInstanceHandler(p, registry.EventUpdate)
		return "write " + p.Kind.String() + " " + ns + "/" + name
	case 8:
		c.registry.WorkloadInstanceHandler(c.pod(ns, name), registry.EventDelete)
		return "delete workload " + ns + "/" + name
	default:
		c.registry.UpdateMesh(serviceentry.Mesh{TrustDomain: c.pick([]string{"td1", "td2"})})
		return "update mesh"
	}
}

func (c *churn) pod(ns, name string) *registry.WorkloadInstance {
	p := pod(name, c.labels(), c.some(churnAddresses[:3])...)
	p.Namespace = ns
	p.Kind = registry.WorkloadKind(c.random.IntN(2))
	p.Cluster = registry.ClusterID(c.pick([]string{"c1", "c2"}))
	if c.random.IntN(3) == 0 {
		p.Endpoint.WorkloadName = ""
	}
	return p
}

func (c *churn) editEntry(spec *networking.ServiceEntry) {
	spec.Hosts = c.some(churnHosts)
	spec.Resolution = networking.ServiceEntry_Resolution(c.random.IntN(4))
	if c.random.IntN(2) == 0 {
		spec.Ports = append(spec.Ports, &networking.ServicePort{Number: 443, Name: "tls", Protocol: "TLS", TargetPort: uint32(c.random.IntN(2) * 8443)})
	}
	for _, a := range []string{"10.9.9.9", "10.9.9.10"} {
		if c.random.IntN(3) == 0 {
			spec.Addresses = append(spec.Addresses, a)
		}
	}
	if c.random.IntN(2) == 0 {
		spec.WorkloadSelector = &networking.WorkloadSelector{Labels: c.labels()}
		return
	}
	for range c.random.IntN(4) {
		spec.Endpoints = append(spec.Endpoints, &networking.WorkloadEntry{
			Address: c.pick(churnAddresses), Labels: c.labels(), ServiceAccount: c.pick([]string{"", "sa"}),
			Ports: map[string]uint32{"http": uint32(c.random.IntN(2) * 8080)},
		})
	}
}

// newUncheckedSystem is newSystemWith for objects that break the rules.
func newUncheckedSystem(t *testing.T, options serviceentry.Options, updater func(*recorder) xdsupdate.XDSUpdater) *system {
	t.Helper()
	b := configstore.NewSchemasBuilder()
	for _, s := range istio.Schemas().All() {
		s.Validate = nil
		b.MustAdd(s)
	}
	options.ClusterID = "c1"
	s := &system{t: t, cache: memory.NewController(memory.Make(b.Build())), recorder: newRecorder(t)}
	s.registry = serviceentry.New(s.cache, updater(s.recorder), options)
	s.cache.Drain()
	return s
}
