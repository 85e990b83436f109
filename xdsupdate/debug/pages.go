// SPDX-License-Identifier: Apache-2.0

package debug

import (
	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/serviceentry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// The names of the pages.
const (
	pageOverview  = ""
	pageConfigs   = "configs"
	pageConfig    = "config"
	pageServices  = "services"
	pageService   = "service"
	pageWorkload  = "workload"
	pageConflicts = "conflicts"
	pagePolicies  = "policies"
	pageExplain   = "explain"
	pageProxies   = "proxies"
	pageProxy     = "proxy"
	pageResource  = "resource"
	pageQueue     = "queue"
	pageVerify    = "verify"
	pageSources   = "sources"
)

// makePages returns the pages for the parts that the Options have, in the order of the navigation.
func (h *handler) makePages() []page {
	pages := []page{{name: pageOverview, title: "Overview", heavy: true, data: h.overview}}
	add := func(there bool, more ...page) {
		if there {
			pages = append(pages, more...)
		}
	}
	add(h.Policies != nil,
		page{name: pageExplain, title: "Explain a call", heavy: true, data: h.explainCall},
		page{name: pagePolicies, title: "Without effect", heavy: true, data: h.ineffective})
	add(h.Server != nil,
		page{name: pageProxies, title: "Proxies", data: h.proxies},
		page{name: pageProxy, under: pageProxies, heavy: true, data: h.proxy},
		page{name: pageResource, under: pageProxies, heavy: true, data: h.resource})
	add(h.Configs != nil,
		page{name: pageConfigs, title: "Configs", data: h.configs},
		page{name: pageConfig, under: pageConfigs, data: h.config})
	add(h.Services != nil,
		page{name: pageServices, title: "Services", data: h.services},
		page{name: pageService, under: pageServices, heavy: true, data: h.service},
		page{name: pageWorkload, under: pageServices, heavy: true, data: h.workload})
	_, conflicts := registry.As[conflicter](h.Services)
	add(conflicts, page{name: pageConflicts, title: "Conflicts", heavy: true, data: h.conflicts})
	add(len(h.Sources) > 0, page{name: pageSources, title: "Sources", data: h.sources})
	add(h.Server != nil, page{name: pageQueue, title: "Queue", data: h.queue})
	add(h.Server != nil || h.Services != nil, page{name: pageVerify, title: "Verify", heavy: true, data: h.verify})
	return pages
}

// conflicter finds host names with more than one definition. aggregate.Controller implements it.
type conflicter interface{ Conflicts() []aggregate.Conflict }

// hasRegistries is an aggregate of registries. aggregate.Controller implements it.
type hasRegistries interface{ Registries() []registry.Instance }

// serviceEntries returns the ServiceEntry registries, including the members of aggregates.
func (h *handler) serviceEntries() []*serviceentry.Controller {
	return partsOf[*serviceentry.Controller](h.Services)
}

// partsOf returns services as a T, and the members of type T if services is an aggregate.
func partsOf[T any](services any) (out []T) {
	if c, ok := registry.As[T](services); ok {
		return append(out, c)
	}
	if a, ok := registry.As[hasRegistries](services); ok {
		for _, r := range a.Registries() {
			out = append(out, partsOf[T](r)...)
		}
	}
	return out
}

// pusher returns the server's queue of push requests.
func (h *handler) pusher() (*xdsupdate.Pusher, bool) {
	return xdsupdate.As[*xdsupdate.Pusher](h.Server)
}
