// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"slices"
	"strings"

	"github.com/pilotkit/pilotkit/registry"
)

// targetOf returns the host name, in lower case, that an alias service stands for. It is empty for
// a service that is not an alias.
func targetOf(svc *registry.Service) registry.Hostname {
	if svc.Resolution != registry.Alias || svc.Attributes.Kubernetes == nil {
		return ""
	}
	return registry.Hostname(strings.TrimSuffix(strings.ToLower(svc.Attributes.Kubernetes.ExternalName), "."))
}

// targetsOf returns the distinct alias targets of the services of one host name.
func targetsOf(services []*registry.Service) []registry.Hostname {
	var out []registry.Hostname
	for _, s := range services {
		if t := targetOf(s); t != "" && !slices.Contains(out, t) {
			out = append(out, t)
		}
	}
	return out
}

// aliasNames returns the names, in lower case, of the direct and indirect aliases of a host. It
// follows an alias to a target only if accept returns true for the pair.
func aliasNames(w world, host registry.Hostname, accept func(alias, target registry.Hostname) bool) []registry.Hostname {
	found := []registry.Hostname{host}
	for i := 0; i < len(found); i++ { // found grows without duplicates, so that loops end
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

// concrete resolves a chain of aliases. It returns the final host name and its service. The service
// is nil if the chain is a loop or its target does not exist. A service that is not an alias is its
// own result.
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

// meanings returns a host and all targets of its alias chains, regardless of visibility.
func meanings(w world, host registry.Hostname) []registry.Hostname {
	names := []registry.Hostname{host}
	for i := 0; i < len(names); i++ { // names grows without duplicates, so that loops end
		for _, t := range targetsOf(w.named(names[i])) {
			if !slices.Contains(names, t) {
				names = append(names, t)
			}
		}
	}
	return names
}

// related returns the names that a change of a host's services concerns: the host, all targets of
// its alias chains, and all aliases of these.
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

// relatedIn returns the names that are related to a host in at least one of the worlds.
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

// aliasesOf adds the resources that a change of a host's services concerns through aliases: the
// clusters, routes and gRPC listeners of all related services, under all related names.
func (c *affected) aliasesOf(host registry.Hostname) {
	names := relatedIn(host, c.before.world, c.after.world)
	if len(names) == 1 {
		return
	}
	for _, name := range names {
		for _, svc := range c.servicesNamed(name) {
			c.upstream(svc)
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
