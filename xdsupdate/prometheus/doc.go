// SPDX-License-Identifier: Apache-2.0

// Package prometheus exports the state of a control plane as Prometheus metrics:
//
//	metrics := prometheus.New()
//	server := ads.New(registries, ads.Options{Observer: metrics})
//	registerer.MustRegister(metrics, prometheus.NewServerCollector(server))
//
// docs/metrics.md lists all metrics, and recommends alerts.
//
// There are four collectors. A host registers those it needs:
//
//	collector          | metrics                                  | cost of a scrape
//	-------------------|------------------------------------------|------------------------------
//	Metrics            | events of ads.Observer: counters,        | its series
//	                   | histograms, connected proxies            |
//	NewServerCollector | pending, rejected and failed resources,  | a look at each subscription
//	                   | and the queue of pushes                  | and each service
//	NewSourceCollector | sources: synced, stale, errors, warnings | a call of each source's State
//	NewConfigCollector | number of configs by kind                | a list of each kind
//
// # Labels
//
// The number of label values is bounded, whatever clients and hosts do: type URLs are those of
// Envoy's main types and of Options.TypeURLs, and all others are "other". Reasons, parts and status
// codes that this module does not know are "other", too. Names of sources and kinds of configs are
// chosen by the host. IDs of proxies, names of resources and texts of errors are never labels; they
// are in the log and in ads.Server.Proxies. All series of Metrics exist from the beginning, with
// zero, so that the first event is an increase.
//
// # Several servers
//
// The package has no global state: a host registers collectors with a registry of its own. The
// metrics of several servers in one process are distinguished by a label that the host adds:
//
//	client.WrapRegistererWith(client.Labels{"server": "east"}, registerer).MustRegister(east)
//
// A Metrics that observes several servers counts the sum of their events.
//
// # Concurrency and failure
//
// Every method is safe for concurrent use. The methods of Observer take no lock and allocate
// nothing. A scrape reads the series one after the other, so two series of one event may differ by
// it. A panic during the collection is an error of the scrape (client.NewInvalidMetric); it neither
// ends the process nor affects other collectors. promhttp serves the other metrics with
// promhttp.ContinueOnError.
package prometheus
