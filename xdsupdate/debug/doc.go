// SPDX-License-Identifier: Apache-2.0

// Package debug shows what a control plane has and does: to people as pages, and to
// programs as JSON. It is one http.Handler, which a program mounts where it likes:
//
//	pages := debug.New(debug.Options{
//		Configs: configs, Services: registries, Server: server, Policies: policies,
//		Sources: []configstore.Source{configstore.SourceOf("directory", files)}, Authorize: operatorsOnly,
//	})
//	mux.Handle("/debug/", http.StripPrefix("/debug", pages))
//
// # Pages
//
// There are pages of what the Options have.
//
//	page      | shows
//	----------|------------------------------------------------------------------
//	(none)    | what wants attention, and how much there is
//	explain   | what becomes of a call, which rules decide it, and why not otherwise
//	policies  | objects, and parts of them, that change nothing, and why
//	proxies   | who is connected, and who refuses, lacks or does not answer what
//	proxy     | versions, refusals, objects that are left out, all its resources
//	resource  | what a proxy was sent, and what it works with
//	configs   | objects by kind, and what the rules of the kind say of them
//	config    | an object, its effects, what sources say of it, who refuses it
//	services  | services of all registries
//	service   | its endpoints; where they come from, and why workloads and pods are none
//	workload  | which ServiceEntries select it, and why others do not
//	conflicts | host names that are defined more than once
//	sources   | what fills the stores: age, last error, what is not taken
//	queue     | what waits to be pushed, and the last push
//	verify    | whether registries show what the stores say
//
// Each of them is JSON with the ending .json (index.json is the first page), with
// format=json, and for a request that accepts application/json and not text/html. The
// fields have the names that they have, which stay; times are RFC 3339. An object
// is its manifest alone with format=yaml. Lists come in parts: from, limit (100, at most
// 1000), and the query of the next part in the field next.
//
// # What is safe
//
// Only GET and HEAD are answered, and they change nothing. Options.Authorize decides who
// sees the pages: they show everything about a mesh but its secrets. There are no scripts, and
// a Content-Security-Policy forbids them; nothing is loaded from elsewhere. Names, labels,
// specs and texts of proxies are text, whatever is in them.
//
// Secrets are not shown: what Envoy takes for sensitive in resources (see
// ads.StateOfResource), and in objects the same fields, what names such as private_key or
// password have in untyped parts, private keys anywhere, and the annotation in which
// kubectl keeps an object a second time. Options.Redact removes what else a host knows.
//
// # What it costs
//
// Nothing while nobody asks. A request lists at most 1000 elements, and what is shown of one
// object is bounded, too. Of the pages that look at everything there is (the
// first one, explain, policies, proxy, service, conflicts, verify) one at a time is made,
// and others wait. Where objects have to be validated to be found 2000 of them
// are at a time.
//
// # Concurrency
//
// The handler may be called by any number of goroutines. What a page shows is of one
// moment as far as what it asks is; two things of it may be of two.
package debug
