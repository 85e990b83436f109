// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/pilotkit/pilotkit/internal/ipaddr"
	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/hostname"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/mesh"
)

// targets determines the listening ports of routers. If a service has an endpoint at a router's
// address, it forwards its port to the endpoint's port, so the router listens there. Only services
// in the router's own namespace count (Istio 1.30), because endpoints with any address can be
// written in any namespace. Only endpoints at the addresses of known routers are evaluated and
// stored.
type targets struct {
	mu    sync.Mutex
	world *mesh.World // world of the last push, nil before the first
	// byPlace contains the target ports for each place of a router, by host.
	byPlace map[workloadPlace]map[registry.Hostname]targetPorts
}

// targetPorts maps the ports of a service to target ports.
type targetPorts map[uint32]uint32

// parseTargetPorts parses the ports that of returns. It returns nil if there are none.
func parseTargetPorts(text string) targetPorts {
	if text == "" {
		return nil
	}
	out := make(targetPorts)
	for pair := range strings.SplitSeq(text, ",") {
		port, target, _ := strings.Cut(pair, "=")
		from, errFrom := strconv.ParseUint(port, 10, 32)
		to, errTo := strconv.ParseUint(target, 10, 32)
		if errFrom == nil && errTo == nil {
			out[uint32(from)] = uint32(to)
		}
	}
	return out
}

// of returns the target ports of a router in a namespace, as "port=target" separated by commas, and
// the hosts of its services, separated by commas.
func (t *targets) of(namespace string, addresses []string) (targets, services string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.watch(namespace, addresses)
	ports, names := make(targetPorts), map[string]struct{}{}
	for _, a := range addresses {
		hosts := t.byPlace[workloadPlace{namespace, ipaddr.Canonical(a)}]
		for _, host := range slices.Backward(slices.Sorted(maps.Keys(hosts))) { // the first host takes precedence
			maps.Copy(ports, hosts[host])
			names[string(host)] = struct{}{}
		}
	}
	var out []string
	for _, port := range slices.Sorted(maps.Keys(ports)) {
		out = append(out, fmt.Sprintf("%d=%d", port, ports[port]))
	}
	return strings.Join(out, ","), strings.Join(slices.Sorted(maps.Keys(names)), ",")
}

// ports returns the possible listening ports for a port of a Gateway: the port itself and the
// target ports of services.
func (t *targets) ports(port uint32) []uint32 {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := []uint32{port}
	for _, hosts := range t.byPlace {
		for _, ports := range hosts {
			if target := ports[port]; target != 0 && !slices.Contains(out, target) {
				out = append(out, target)
			}
		}
	}
	return out
}

// watch adds the places of a router to byPlace.
func (t *targets) watch(namespace string, addresses []string) {
	some := false
	for _, a := range addresses {
		at := workloadPlace{namespace, ipaddr.Canonical(a)}
		if t.byPlace[at] != nil {
			continue
		}
		if t.byPlace == nil {
			t.byPlace = make(map[workloadPlace]map[registry.Hostname]targetPorts)
		}
		t.byPlace[at] = make(map[registry.Hostname]targetPorts)
		some = true
	}
	if some && t.world != nil {
		for name := range t.world.Hosts() {
			t.scan(name)
		}
	}
}

// advance sets the world of a push and reports whether the ports of a router have changed.
func (t *targets) advance(w *mesh.World, push *ads.PushContext) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.world
	t.world = w
	if len(t.byPlace) == 0 {
		return false
	}
	changed := false
	if before == nil {
		for name := range w.Hosts() {
			changed = t.scan(name) || changed
		}
		return changed
	}
	for _, host := range push.ChangedHosts() {
		if !host.EndpointsOnly || t.moved(before, host.Hostname) {
			changed = t.scan(hostname.Lower(host.Hostname)) || changed
		}
	}
	return changed
}

// moved reports whether the changed endpoints of a host since an earlier world include one at the
// address of a router. Most changes do not, and then need no scan of all endpoints.
func (t *targets) moved(since *mesh.World, host registry.Hostname) bool {
	for _, svc := range t.world.Named(host) {
		now, before := t.world.Endpoints(svc.Hostname, svc.Attributes.Namespace), since.Endpoints(svc.Hostname, svc.Attributes.Namespace)
		for _, e := range now.ChangesSince(before) {
			for _, a := range e.Addresses {
				if t.watched(placeOf(svc, a)) {
					return true
				}
			}
		}
	}
	return false
}

func (t *targets) watched(at workloadPlace) bool { return t.byPlace[at] != nil }

// placeOf returns the place of a service's endpoint address.
func placeOf(svc *registry.Service, address string) workloadPlace {
	return workloadPlace{svc.Attributes.Namespace, mesh.CanonicalAddress(address)}
}

// scan evaluates the endpoints of a host in lower case, and reports whether target ports have
// changed.
func (t *targets) scan(name registry.Hostname) bool {
	found := make(map[workloadPlace]targetPorts)
	for _, svc := range t.world.Named(name) {
		for e := range t.world.Endpoints(svc.Hostname, svc.Attributes.Namespace).All() {
			for _, a := range e.Addresses {
				if at := placeOf(svc, a); t.watched(at) {
					addTargets(found, at, svc, e)
				}
			}
		}
	}
	changed := false
	for at, hosts := range t.byPlace {
		if maps.Equal(hosts[name], found[at]) {
			continue
		}
		changed = true
		if delete(hosts, name); found[at] != nil {
			hosts[name] = found[at]
		}
	}
	return changed
}

// untranslatedLabel, with any value, marks services whose ports are ignored here: their routers
// listen on the ports of Gateways (Istio 1.30).
const untranslatedLabel = "experimental.istio.io/disable-gateway-port-translation"

func addTargets(found map[workloadPlace]targetPorts, at workloadPlace, svc *registry.Service, e *registry.Endpoint) {
	if _, untranslated := svc.Attributes.Labels[untranslatedLabel]; untranslated {
		return
	}
	for _, port := range svc.Ports {
		if !xdsbuild.Serves(e, port) {
			continue
		}
		if found[at] == nil {
			found[at] = make(targetPorts)
		}
		if _, taken := found[at][port.Number]; !taken {
			found[at][port.Number] = e.EndpointPort
		}
	}
}
