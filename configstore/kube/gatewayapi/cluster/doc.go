// SPDX-License-Identifier: Apache-2.0

// Package cluster follows the Gateway API's objects of a Kubernetes API server, shows what becomes of
// them as a ConfigStoreCache, and writes their statuses.
//
//	gateways, err := cluster.New(restConfig, cluster.Options{CacheOptions: gatewayapi.CacheOptions{Infrastructure: host}})
//	statuses, err := cluster.NewStatusWriter(gateways, restConfig, kube.StatusOptions{Lease: "gateways", LeaseNamespace: "istio-system"})
//	configs := aggregate.MakeCache(resources, gateways)
//	go statuses.Run(stop)
//	go configs.Run(stop) // and with it the caches
//
// # What is read
//
// The kinds of gatewayapi.Schemas as configstore/kube says: a kind whose CRD comes later is
// followed from then on, under version v1 or else an older one that the server serves, and one
// without a CRD has no objects. Beside them Namespaces, Services, Secrets and ConfigMaps; and,
// without an Infrastructure, EndpointSlices, which say whether Gateways have proxies. A kind
// that is forbidden has no objects, or keeps those that it had, and is one of Cache.Errors; nothing
// else changes by that. HasSynced waits until everything may be read, but for Options.Optional.
//
// Of Secrets and ConfigMaps nothing is kept but certificates, their keys and authorities.
// Package credentials serves them.
//
// # Access
//
// A Cache needs the verbs list and watch for the kinds of gateway.networking.k8s.io, for
// customresourcedefinitions.apiextensions.k8s.io, namespaces, services, secrets, configmaps and
// endpointslices.discovery.k8s.io, in all namespaces.
package cluster
