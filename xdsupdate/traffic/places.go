// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/pilotkit/pilotkit/internal/ipaddr"
	"github.com/pilotkit/pilotkit/internal/limit"
	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/hostname"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/mesh"
)

// places answers which services have workloads at the addresses of a client. A router listens on
// the target ports of these services, and a gRPC client with a workload may be a server. Only
// services in the client's own namespace count (Istio 1.30), because endpoints with any address can
// be written in any namespace. The answers are kept, and a push that changes one of them regroups
// the clients.
type places struct {
	// last returns the result of the last push.
	last func() *provided

	mu sync.Mutex
	// If too many places were asked about, they are all forgotten, and a regrouping of the connected
	// clients asks again. limit is the number of places that leads to this.
	asked map[clientPlace]workloadsThere
	limit int
}

// workloadPlace is a canonical address in a namespace.
type workloadPlace struct{ namespace, address string }

// clientPlace is an address of a router or of a gRPC client.
type clientPlace struct {
	workloadPlace
	router bool
}

// leastAsked is the lower bound of limit.
const leastAsked limit.Size = 4096

// workloadsThere describes the workloads at the addresses of a client.
type workloadsThere struct {
	// addresses are the addresses in canonical form, sorted.
	addresses []string
	// services are the hosts of their services, in lower case, sorted.
	services []string
	ports    targetPorts
}

// of returns the workloads at the addresses of a client.
func (x *places) of(namespace string, addresses []string, router bool) workloadsThere {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.asked == nil {
		x.asked = make(map[clientPlace]workloadsThere)
	}
	canonical := make([]string, len(addresses))
	for i, a := range addresses {
		canonical[i] = ipaddr.Canonical(a)
	}
	slices.Sort(canonical)
	out := x.at(namespace, slices.Compact(canonical))
	for _, a := range out.addresses {
		at := clientPlace{workloadPlace{namespace, a}, router}
		x.renew(at)
		if !router {
			out.services = append(out.services, x.asked[at].services...)
		}
	}
	return out
}

// at returns the workloads at canonical addresses.
func (x *places) at(namespace string, addresses []string) workloadsThere {
	out := workloadsThere{addresses: addresses, ports: make(targetPorts)}
	last := x.last()
	if last == nil {
		return out
	}
	all := last.state.workloads.At(namespace, addresses)
	slices.SortStableFunc(all, func(a, b mesh.Workload) int { // the first host takes precedence
		return cmp.Compare(hostname.Lower(a.Service.Hostname), hostname.Lower(b.Service.Hostname))
	})
	for _, w := range all {
		out.services = append(out.services, string(hostname.Lower(w.Service.Hostname)))
		out.ports.add(w)
	}
	out.services = slices.Compact(out.services)
	return out
}

// renew updates the answer about a place, and reports whether clients must be regrouped. A gRPC
// client stays a server when its workload is deleted, so that it keeps its view and learns that its
// listeners are deleted.
func (x *places) renew(at clientPlace) bool {
	before := x.asked[at]
	if !at.router && len(before.services) > 0 {
		return false
	}
	now := x.at(at.namespace, []string{at.address})
	x.asked[at] = now
	return !slices.Equal(before.services, now.services) || at.router && !maps.Equal(before.ports, now.ports)
}

// advance reports whether clients must be regrouped after a push, because the workloads at their
// addresses have changed or because the places are forgotten. A nil difference stands for the first
// push. The result of the push must already be the last one.
func (x *places) advance(d *difference) (regroup bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.asked) > max(x.limit, leastAsked.Get()) {
		x.limit = 2 * len(x.asked)
		x.asked = nil
		return true
	}
	if d == nil {
		for at := range x.asked {
			regroup = x.renew(at) || regroup
		}
		return regroup
	}
	if len(x.asked) == 0 {
		return false
	}
	for place := range d.places() {
		for _, router := range []bool{false, true} {
			at := clientPlace{place, router}
			if _, asked := x.asked[at]; asked {
				regroup = x.renew(at) || regroup
			}
		}
	}
	return regroup
}

// servers reports whether a gRPC client has asked.
func (x *places) servers() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	for at := range x.asked {
		if !at.router {
			return true
		}
	}
	return false
}

// ports returns the possible listening ports for a port of a Gateway: the port itself and the
// target ports of services.
func (x *places) ports(port uint32) []uint32 {
	x.mu.Lock()
	defer x.mu.Unlock()
	out := []uint32{port}
	for at, there := range x.asked {
		if target := there.ports[port]; at.router && target != 0 && !slices.Contains(out, target) {
			out = append(out, target)
		}
	}
	return out
}

// targetPorts maps the ports of services to target ports.
type targetPorts map[uint32]uint32

// untranslatedLabel, with any value, marks services whose ports are ignored here: their routers
// listen on the ports of Gateways (Istio 1.30).
const untranslatedLabel = "experimental.istio.io/disable-gateway-port-translation"

// add adds the target ports of a workload, except for ports that have one.
func (t targetPorts) add(w mesh.Workload) {
	if _, untranslated := w.Service.Attributes.Labels[untranslatedLabel]; untranslated {
		return
	}
	for _, port := range w.Service.Ports {
		if port == nil || t[port.Number] != 0 || !xdsbuild.Serves(w.Endpoint, port) {
			continue
		}
		t[port.Number] = w.Endpoint.EndpointPort
	}
}

// String returns the ports as "port=target", separated by commas.
func (t targetPorts) String() string {
	var out []string
	for _, port := range slices.Sorted(maps.Keys(t)) {
		out = append(out, fmt.Sprintf("%d=%d", port, t[port]))
	}
	return strings.Join(out, ",")
}

// parseTargetPorts parses the result of String. It returns nil if there are none.
func parseTargetPorts(text string) targetPorts {
	if text == "" {
		return nil
	}
	out := make(targetPorts)
	for pair := range strings.SplitSeq(text, ",") {
		port, target, _ := strings.Cut(pair, "=")
		from, _ := strconv.ParseUint(port, 10, 32) // String has written both
		to, _ := strconv.ParseUint(target, 10, 32)
		out[uint32(from)] = uint32(to)
	}
	return out
}
