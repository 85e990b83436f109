// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"slices"
	"strings"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// targetOf returns the host name, in lower case, that a service is another name for;
// "" for a service of its own.
func targetOf(svc *registry.Service) registry.Hostname {
	if svc.Resolution != registry.Alias || svc.Attributes.Kubernetes == nil {
		return ""
	}
	return registry.Hostname(strings.TrimSuffix(strings.ToLower(svc.Attributes.Kubernetes.ExternalName), "."))
}

// targetsOf returns the targets of the services of one name, each once.
func targetsOf(services []*registry.Service) []registry.Hostname {
	var out []registry.Hostname
	for _, s := range services {
		if t := targetOf(s); t != "" && !slices.Contains(out, t) {
			out = append(out, t)
		}
	}
	return out
}

// aliasNames returns the names in lower case that stand for a host, directly or by way
// of each other, among those that are accepted as names for a target.
func aliasNames(w world, host registry.Hostname, accept func(alias, target registry.Hostname) bool) []registry.Hostname {
	found := []registry.Hostname{host}
	for i := 0; i < len(found); i++ { // which grows, and has no name twice: loops end
		for _, alias := range w.aliases(found[i]) {
			if !slices.Contains(found, alias) && accept(alias, found[i]) {
				found = append(found, alias)
			}
		}
	}
	return found[1:]
}

// aliasesSeen returns the names of the aliases of a host that a listener sees.
func (st *state) aliasesSeen(e *egress, host registry.Hostname) []registry.Hostname {
	if e == nil {
		return nil
	}
	return aliasNames(st.world, host, func(alias, target registry.Hostname) bool {
		svc := e.service(alias)
		return svc != nil && targetOf(svc.of[0]) == target
	})
}

// concrete returns what a service stands for, itself if it is no alias: the host name,
// and the service, which is nil at the end of a loop and where there is none.
func concrete(svc *service, find func(registry.Hostname) *service) (registry.Hostname, *service) {
	seen := make([]registry.Hostname, 0, 1)
	host := svc.host
	for svc != nil {
		target := targetOf(svc.of[0])
		if target == "" {
			return svc.host, svc
		}
		if slices.Contains(seen, target) {
			return host, nil
		}
		seen = append(seen, target)
		host, svc = target, find(target)
	}
	return host, nil
}

// meanings returns a host, and all for which it stands, whoever may see them.
func meanings(w world, host registry.Hostname) []registry.Hostname {
	names := []registry.Hostname{host}
	for i := 0; i < len(names); i++ { // which grows, and has no name twice: loops end
		for _, t := range targetsOf(w.named(names[i])) {
			if !slices.Contains(names, t) {
				names = append(names, t)
			}
		}
	}
	return names
}

// related returns the names that a change of the services of a host concerns with it:
// all for which it stands, and all that stand for it or these.
func related(w world, host registry.Hostname) []registry.Hostname {
	names := meanings(w, host)
	for _, n := range slices.Clone(names) {
		for _, alias := range aliasNames(w, n, func(_, _ registry.Hostname) bool { return true }) {
			if !slices.Contains(names, alias) {
				names = append(names, alias)
			}
		}
	}
	return names
}

// relatedIn returns the names that are related to a host in one of the worlds.
func relatedIn(host registry.Hostname, worlds ...world) []registry.Hostname {
	var out []registry.Hostname
	for _, w := range worlds {
		for _, n := range related(w, host) {
			if !slices.Contains(out, n) {
				out = append(out, n)
			}
		}
	}
	return out
}

// aliasesOf adds what a change of the services of a host concerns by way of aliases:
// routes and gRPC listeners of the services that it stands for, under all names.
func (c *affected) aliasesOf(host registry.Hostname) {
	names := relatedIn(host, c.before.world, c.after.world)
	if len(names) == 1 {
		return
	}
	for _, name := range names {
		for _, svc := range c.servicesNamed(name) {
			c.clusters(svc, envoy.ClusterType)
			c.clusters(svc, envoy.LoadAssignmentType)
			c.routes(svc, "alias "+string(host), func(p *proxy) bool { return c.seesService(p, host) })
			for _, alias := range names {
				renamed := *svc
				renamed.Hostname = alias
				c.grpcListeners(&renamed)
			}
		}
		for _, st := range c.states() {
			for _, v := range st.finder.leadingTo(name) {
				c.virtualService(v)
			}
		}
	}
}
