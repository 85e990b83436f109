// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pilotkit/pilotkit/internal/test/corpus"
)

// tampering is a wrong observation that the comparison must find. apply changes
// an observation if it can, and reports whether it did.
type tampering struct {
	name    string
	section string
	apply   func(o *observation) bool
}

// first changes the first element of a list that change accepts.
func first[T any](list []T, change func(*T) bool) bool {
	for i := range list {
		if change(&list[i]) {
			return true
		}
	}
	return false
}

// dropCall removes the first call that is.
func dropCall(o *observation, is func(call) bool) bool {
	i := slices.IndexFunc(o.Calls, is)
	if i < 0 {
		return false
	}
	o.Calls = slices.Delete(slices.Clone(o.Calls), i, i+1)
	return true
}

func isCall(name string) func(call) bool { return func(c call) bool { return c.Call == name } }

// pushing is an EDSUpdate that changes something.
func pushing(c call) bool { return c.Call == callEDSUpdate && c.PushType != noPush }

func tamperings() []tampering {
	return slices.Concat(storeTamperings(), serviceTamperings(), endpointTamperings(), proxyTamperings(),
		callTamperings(), handlerTamperings())
}

func storeTamperings() []tampering {
	return []tampering{
		{"outcome", "results", func(o *observation) bool {
			return first(o.Results, func(r *result) bool { r.Outcome = outcomeConflict; return true })
		}},
		{"version repeated", "results", func(o *observation) bool {
			return first(o.Results, func(r *result) bool {
				ok := r.ResourceVersion != "" && r.ResourceVersion != "1"
				if ok {
					r.ResourceVersion = "1"
				}
				return ok
			})
		}},
		{"content of an object", "results", func(o *observation) bool {
			return first(o.Results, func(r *result) bool {
				if r.Item == nil || r.Item.Spec == nil {
					return false
				}
				r.Item.Spec = map[string]any{}
				return true
			})
		}},
		{"object missing in a list", "results", func(o *observation) bool {
			return first(o.Results, func(r *result) bool {
				ok := len(r.Items) > 0
				r.Items = nil
				return ok
			})
		}},
		{"event missing", "eventHandlerCalls", func(o *observation) bool {
			ok := len(o.EventHandlerCalls) > 0
			o.EventHandlerCalls = nil
			return ok
		}},
	}
}

func serviceTamperings() []tampering {
	inService := func(name string, change func(*service) bool) tampering {
		return tampering{name, "services", func(o *observation) bool { return first(o.Services, change) }}
	}
	return []tampering{
		{"service missing", "services", func(o *observation) bool {
			ok := len(o.Services) > 0
			o.Services = nil
			return ok
		}},
		inService("protocol", func(s *service) bool { s.Ports = []port{{Name: "http", Port: 80, Protocol: "TCP"}}; return true }),
		inService("resolution", func(s *service) bool { s.Resolution = "Alias"; return true }),
		inService("location", func(s *service) bool { s.MeshExternal = !s.MeshExternal; return true }),
		inService("exportTo", func(s *service) bool { s.ExportTo = append(s.ExportTo, "x"); return true }),
		inService("visibility", func(s *service) bool { s.Visibility = "~"; return true }),
		inService("creation time", func(s *service) bool { s.CreationTime = "2020-01-01T00:00:00Z"; return true }),
		inService("allocated address", func(s *service) bool {
			ok := s.AutoAllocatedIPv4 != ""
			s.AutoAllocatedIPv4 = ""
			return ok
		}),
		inService("cluster addresses", func(s *service) bool {
			ok := len(s.ClusterVIPs) > 0
			s.ClusterVIPs = nil
			return ok
		}),
		{"lookup", "getService", func(o *observation) bool {
			for k := range o.GetService {
				o.GetService[k] = answers{"somebody else"}
				return true
			}
			return false
		}},
		{"registry order", "registryOrder", func(o *observation) bool {
			ok := len(o.RegistryOrder) > 1
			slices.Reverse(o.RegistryOrder)
			return ok
		}},
	}
}

func endpointTamperings() []tampering {
	inIndex := func(name string, change func(*endpoint) bool) tampering {
		return tampering{name, "endpointIndex", func(o *observation) bool {
			return first(o.EndpointIndex, func(e *indexEntry) bool {
				return first(e.Shards, func(s *shard) bool { return first(s.Endpoints, change) })
			})
		}}
	}
	return []tampering{
		inIndex("address", func(e *endpoint) bool { e.Addresses = []string{"9.8.7.6"}; return true }),
		inIndex("port", func(e *endpoint) bool { e.EndpointPort++; return true }),
		inIndex("labels", func(e *endpoint) bool { e.Labels = map[string]string{"x": "y"}; return true }),
		inIndex("network", func(e *endpoint) bool { e.Network += "x"; return true }),
		inIndex("locality", func(e *endpoint) bool { e.Locality += "x"; return true }),
		inIndex("weight", func(e *endpoint) bool { e.LbWeight++; return true }),
		inIndex("health", func(e *endpoint) bool { e.HealthStatus = "Draining"; return true }),
		inIndex("workload name", func(e *endpoint) bool { e.WorkloadName += "x"; return true }),
		{"endpoint missing", "endpointIndex", func(o *observation) bool {
			return first(o.EndpointIndex, func(e *indexEntry) bool { ok := len(e.Shards) > 0; e.Shards = nil; return ok })
		}},
		{"endpoint twice", "endpointIndex", func(o *observation) bool {
			return first(o.EndpointIndex, func(e *indexEntry) bool {
				return first(e.Shards, func(s *shard) bool { s.Endpoints = append(s.Endpoints, s.Endpoints...); return true })
			})
		}},
		{"service accounts", "endpointIndex", func(o *observation) bool {
			return first(o.EndpointIndex, func(e *indexEntry) bool {
				ok := len(e.ServiceAccounts) > 0 && len(e.Shards) > 0
				e.ServiceAccounts = nil
				return ok
			})
		}},
		{"key left behind", "endpointIndex", func(o *observation) bool {
			o.EndpointIndex = append(o.EndpointIndex, indexEntry{Hostname: "ghost", Namespace: "ns1"})
			return true
		}},
	}
}

func proxyTamperings() []tampering {
	proxy := func(name string, change func(*proxyState) bool) tampering {
		return tampering{name, "proxies", func(o *observation) bool { return first(o.Proxies, change) }}
	}
	return []tampering{
		proxy("target missing", func(p *proxyState) bool { ok := len(p.Targets) > 0; p.Targets = nil; return ok }),
		proxy("target too many", func(p *proxyState) bool {
			p.Targets = append(p.Targets, target{Hostname: "ghost", Namespace: "ns1", Port: 80})
			return true
		}),
		proxy("target port", func(p *proxyState) bool {
			return first(p.Targets, func(t *target) bool { t.TargetPort++; return true })
		}),
		proxy("labels missing", func(p *proxyState) bool { ok := p.WorkloadLabels != nil; p.WorkloadLabels = nil; return ok }),
		proxy("labels of nobody", func(p *proxyState) bool {
			ok := p.WorkloadLabels == nil
			p.WorkloadLabels = &map[string]string{}
			return ok
		}),
		proxy("service addresses", func(p *proxyState) bool {
			ok := len(p.ServiceAddresses) > 0
			p.ServiceAddresses = nil
			return ok
		}),
	}
}

func callTamperings() []tampering {
	calls := func(name, section string, change func(*call) bool) tampering {
		return tampering{name, section, func(o *observation) bool { return first(o.Calls, change) }}
	}
	return []tampering{
		{"EDSUpdate missing", "pushes", func(o *observation) bool { return dropCall(o, pushing) }},
		calls("push too weak", "pushes", func(c *call) bool { ok := pushing(*c); c.PushType = noPush; return ok }),
		calls("push too strong", "pushes", func(c *call) bool {
			ok := c.PushType == incrementalPush
			if ok {
				c.PushType = fullPush
			}
			return ok
		}),
		{"EDSUpdate repeated", "pushes", func(o *observation) bool {
			i := slices.IndexFunc(o.Calls, pushing)
			if i < 0 {
				return false
			}
			o.Calls = append(o.Calls, o.Calls[i])
			return true
		}},
		{"ConfigUpdate first", "order", func(o *observation) bool {
			i := slices.IndexFunc(o.Calls, isCall(callConfigUpdate))
			if i < 1 {
				return false
			}
			o.Calls[0], o.Calls[i] = o.Calls[i], o.Calls[0]
			return true
		}},
		{"EDSUpdate for nothing", "pushes", func(o *observation) bool {
			o.Calls = append(o.Calls, call{Call: callEDSUpdate, Hostname: "ghost", Namespace: "ns1", PushType: incrementalPush})
			return true
		}},
		{"ConfigUpdate missing", "ConfigUpdate", func(o *observation) bool { return dropCall(o, isCall(callConfigUpdate)) }},
		{"ConfigUpdate of DNS endpoints missing", "ConfigUpdate", func(o *observation) bool {
			return dropCall(o, func(c call) bool { return slices.Contains(c.Reasons, reasonEndpoint) })
		}},
		{"ConfigUpdate too many", "ConfigUpdate", func(o *observation) bool {
			o.Calls = append(o.Calls, call{Call: callConfigUpdate, ConfigsUpdated: []string{"ServiceEntry/ns1/ghost"}, Reasons: []string{reasonEndpoint}})
			return true
		}},
		calls("ConfigUpdate of everything", "ConfigUpdate", func(c *call) bool {
			ok := c.Call == callConfigUpdate
			if ok {
				c.Forced = true
			}
			return ok
		}),
		{"SvcUpdate missing", "SvcUpdate", func(o *observation) bool { return dropCall(o, isCall(callSvcUpdate)) }},
		calls("SvcUpdate delete instead of add", "SvcUpdate", func(c *call) bool {
			ok := c.Call == callSvcUpdate && c.Event == eventAdd
			if ok {
				c.Event = eventDelete
			}
			return ok
		}),
		{"ProxyUpdate missing", "ProxyUpdate", func(o *observation) bool { return dropCall(o, isCall(callProxyUpdate)) }},
		{"ProxyUpdate too many", "ProxyUpdate", func(o *observation) bool {
			o.Calls = append(o.Calls, call{Call: callProxyUpdate, Cluster: "cluster-1", IP: "9.9.9.8"})
			return true
		}},
	}
}

func handlerTamperings() []tampering {
	workload := func(name string, change func(*workloadHandlerCall) bool) tampering {
		return tampering{name, "workloadHandlerCalls", func(o *observation) bool { return first(o.WorkloadHandlerCalls, change) }}
	}
	return []tampering{
		{"workload call missing", "workloadHandlerCalls", func(o *observation) bool {
			ok := len(o.WorkloadHandlerCalls) > 0
			o.WorkloadHandlerCalls = nil
			return ok
		}},
		workload("workload event", func(c *workloadHandlerCall) bool { c.Event = "other"; return true }),
		workload("workload kind", func(c *workloadHandlerCall) bool { c.Kind = "Pod"; return true }),
		workload("workload ports", func(c *workloadHandlerCall) bool { c.PortMap = map[string]uint32{"x": 1}; return true }),
		workload("workload content", func(c *workloadHandlerCall) bool { c.Endpoint.ServiceAccount = "x"; return true }),
		{"service call missing", "serviceHandlerCalls", func(o *observation) bool {
			ok := len(o.ServiceHandlerCalls) > 0 && o.ServiceHandlerCalls[0].Previous != ""
			if ok {
				o.ServiceHandlerCalls = nil
			}
			return ok
		}},
	}
}

// TestComparisonFinds presents every kind of wrong observation to the comparison, in the first
// scenario that allows it.
func TestComparisonFinds(t *testing.T) {
	names, err := corpus.Names(ownDirectory)
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]recordedCase{}
	for _, name := range names {
		cases[name] = load(t, name)
	}
	for _, wrong := range tamperings() {
		t.Run(wrong.name, func(t *testing.T) {
			for _, name := range names {
				ofStore := wrong.section == "results" || wrong.section == "eventHandlerCalls"
				if strings.HasPrefix(name, "configstore/") != ofStore {
					continue
				}
				done := false
				c := cases[name]
				differences, err := replayOnce(filepath.Dir(name), c.scenario, c.golden, false, func(got *observation) {
					done = done || wrong.apply(got)
				})
				if err != nil {
					t.Fatal(err)
				}
				if !done {
					continue
				}
				found := func(d string) bool { return strings.Contains(d, wrong.section) }
				if !slices.ContainsFunc(differences, found) {
					t.Errorf("%s: not found in section %s; found: %v", name, wrong.section, differences)
				}
				return
			}
			t.Error("no scenario that passes offers an occasion")
		})
	}
}

// recordedCase is a scenario that was read.
type recordedCase struct {
	scenario *scenario
	golden   *golden
}

func load(t *testing.T, name string) recordedCase {
	t.Helper()
	path := filepath.Join(ownDirectory, filepath.FromSlash(name))
	s, err := loadScenario(path)
	if err != nil {
		t.Fatal(err)
	}
	g, err := loadGolden(path + goldenSuffix)
	if err != nil {
		t.Fatal(err)
	}
	return recordedCase{scenario: s, golden: g}
}
