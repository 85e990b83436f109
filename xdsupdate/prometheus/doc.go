// SPDX-License-Identifier: Apache-2.0

// Package prometheus shows what a control plane does as metrics of Prometheus:
//
//	metrics := prometheus.New()
//	server := ads.New(registries, ads.Options{Observer: metrics})
//	registerer.MustRegister(metrics, prometheus.NewServerCollector(server))
//
// docs/metrics.md lists all metrics, with what to alert on.
//
// There are four collectors, each of which a host registers or leaves alone:
//
//	collector          | has                                      | a scrape costs
//	-------------------|------------------------------------------|------------------------------
//	Metrics            | what the server did, as ads.Observer     | what its series cost
//	                   | tells: counters and histograms, and the  |
//	                   | connected proxies                        |
//	NewServerCollector | what is pending, refused or failed now,  | a look at each subscription
//	                   | and the queue of pushes                  | and each service
//	NewSourceCollector | sources: synced, stale, errors, warnings | what they take to say so
//	NewConfigCollector | how many configs there are, by kind      | a list of each kind
//
// # Labels
//
// The values of labels are bounded, whatever clients and hosts do: type URLs are
// those of Envoy's main types and of Options.TypeURLs, and all others together are
// "other"; so are the reasons, parts and status codes that this module does not
// know. Names of sources and kinds of configs are the program's. IDs of proxies, names of
// resources and texts of errors are in the log, and in ads.Server.Proxies, never here.
// All series of Metrics are there from the beginning, with zero, so that the first
// event is an increase.
//
// # Several servers
//
// Nothing is global: a host registers collectors with the registry that it has. The
// metrics of several servers in one process are told apart by a label that the program
// adds:
//
//	client.WrapRegistererWith(client.Labels{"server": "east"}, registerer).MustRegister(east)
//
// A Metrics that observes several servers counts what they do together.
//
// # Concurrency and failure
//
// Every method may be called from any goroutine. The methods of Observer take no lock
// and allocate nothing. A scrape sees each series at a moment of its own: two of
// one event may differ by it. What panics while it is collected is an error of the
// scrape (client.NewInvalidMetric) and ends neither the process nor what else is
// collected; promhttp serves the rest with promhttp.ContinueOnError.
package prometheus
