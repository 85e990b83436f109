// SPDX-License-Identifier: Apache-2.0

// Package debug shows the state of a control plane, as HTML pages and as JSON. It is one
// http.Handler, which the host mounts at a path of its choice:
//
//	pages := debug.New(debug.Options{
//		Configs: configs, Services: registries, Server: server, Policies: policies,
//		Sources: []configstore.Source{configstore.SourceOf("directory", files)}, Authorize: operatorsOnly,
//	})
//	mux.Handle("/debug/", http.StripPrefix("/debug", pages))
//
// # Pages
//
// A page exists if the Options have the part that it shows.
//
//	page      | shows
//	----------|------------------------------------------------------------------
//	(none)    | overview: problems, and number of objects
//	explain   | outcome of a call, rules that decide it, rules that do not match and why
//	policies  | objects, and parts of objects, without effect, and why
//	proxies   | connected proxies; proxies with NACKs, failed resources or overdue ACKs
//	proxy     | versions, NACKs, objects left out, all resources of the proxy
//	resource  | resource as sent to a proxy, and the state that the proxy uses
//	configs   | objects by kind, with their validation errors and warnings
//	config    | object, its effects, problems of its sources, proxies that reject it
//	services  | services of all registries
//	service   | endpoints of the service, their origin, workloads and pods that are not endpoints and why
//	workload  | ServiceEntries that select the workload, ServiceEntries that do not and why
//	conflicts | host names with more than one definition
//	sources   | sources of the stores: age, last error, rejected objects
//	queue     | pending push requests, and the last push
//	verify    | differences between the registries and the stores
//
// The page NAME.json is the page as JSON (index.json is the first page). So is a page with
// format=json, and the response to a request that accepts application/json and not text/html. The
// names of JSON fields are stable; times are RFC 3339. With format=yaml the page of an object is
// its manifest alone. Lists are paged: the parameters are from and limit (default 100, at most
// 1000), and the field next is the query of the next page.
//
// # Security
//
// The handler answers only GET and HEAD, and a request changes nothing. Options.Authorize decides
// who may see the pages, because they show everything about a mesh except its secrets. The pages
// have no scripts, a Content-Security-Policy forbids them, and nothing is loaded from other hosts.
// Names, labels, specs and messages of proxies are always escaped as text.
//
// Secrets are redacted: the fields of resources that Envoy marks as sensitive (see
// ads.StateOfResource), the same fields of objects, fields of untyped parts with names such as
// private_key or password, private keys in any text, and the annotation in which kubectl stores a
// second copy of an object. Options.Redact removes other secrets, which only the host knows.
//
// # Cost
//
// The handler costs nothing between requests. A request lists at most 1000 elements, and the text
// shown of one object is bounded, too. Some pages read the whole state (overview, explain, policies,
// proxy, resource, service, workload, conflicts, verify). They are computed one at a time, and other
// requests for them wait. A request that has to validate objects in order to find them validates 2000
// of them.
//
// # Concurrency
//
// The handler may be called by any number of goroutines. Each part of a page is a consistent
// snapshot if its source provides one. Two parts of a page may come from two different snapshots.
package debug
