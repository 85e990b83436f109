// SPDX-License-Identifier: Apache-2.0

// Package pilotkit is the map of a library: the core of Istio Pilot — config
// store, service registry, aggregation, and the way from a change to an xDS
// push — without Kubernetes and without a daemon. The package itself holds
// nothing; a program wires the parts below together and drives them.
//
//	files ──> configstore ──events──> registry/serviceentry ─┐
//	             │                     registry/memory ──────┼──> xdsupdate ──> xdsupdate/ads ──> Envoy, gRPC
//	             └── ConfigHandler ──────────────────────────┘   (index, debounce)
//	                                    aggregate: many stores as one, many registries as one
//
// # Configs
//
// Package configstore defines configs, the contract of their stores, and the guarantees for
// handlers of their events. configstore/istio has the Istio kinds
// with their validation, configstore/manifest reads and writes Kubernetes-style
// YAML, configstore/memory is a store with one revision for all changes,
// configstore/file keeps a store equal to a directory, and configstore/storetest
// proves that any other store keeps the promises. configstore/kube, a module of its
// own, shows the custom resources of a Kubernetes API server,
// configstore/kube/gatewayapi, another one, converts objects of the Gateway API, and
// configstore/etcd, a third one, keeps configs in etcd for several processes.
//
// # Services
//
// Package registry says what services, endpoints and workloads are and how a
// registry behaves. registry/serviceentry makes services of ServiceEntries and
// WorkloadEntries, registry/serviceentry/explain says where their endpoints come
// from, registry/memory is filled by hand, and registry/registrytest
// proves that any other registry keeps the promises. registry/kube, a module of its
// own, is the registry of a Kubernetes cluster.
//
// # Many sources
//
// Package aggregate makes one store of several and one registry of several.
//
// # Pushes
//
// Package xdsupdate receives the changes of registries: XDSUpdater,
// EndpointIndex and a debouncing Pusher. xdsupdate/envoy makes xDS resources of
// services and endpoints, and xdsupdate/ads serves them to Envoys and gRPC clients.
// xdsupdate/traffic applies VirtualServices, DestinationRules, Gateways and Sidecars to these
// resources, xdsupdate/secrets serves certificates and keys, and xdsupdate/snapshots serves
// resources of the host's own for each node.
// xdsupdate/prometheus, a module of its own, exports metrics of the server.
// xdsupdate/xdstest has a recording updater and an xDS client for tests.
//
// # Life cycle
//
// No constructor starts a goroutine. Everything that works in the background has
// a Run(stop) that blocks until stop is closed and returns when all that it
// started has ended; the table of the life cycle is in package configstore. Two of
// everything fit in one process.
package pilotkit
