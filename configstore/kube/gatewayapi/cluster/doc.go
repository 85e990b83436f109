// SPDX-License-Identifier: Apache-2.0

// Package cluster watches the Gateway API objects of a Kubernetes API server, publishes the
// resulting configs as a ConfigStoreCache, and writes the statuses of the objects.
//
//	gateways, err := cluster.New(restConfig, cluster.Options{CacheOptions: gatewayapi.CacheOptions{Infrastructure: host}})
//	statuses, err := cluster.NewStatusWriter(gateways, restConfig, kube.StatusOptions{Lease: "gateways", LeaseNamespace: "istio-system"})
//	configs := aggregate.MakeCache(resources, gateways)
//	go statuses.Run(stop)
//	go configs.Run(stop) // and with it the caches
//
// # Watched kinds
//
// The kinds of gatewayapi.Schemas are watched as in configstore/kube: a kind whose CRD is created
// later is watched from then on, under version v1 or else under an older one that the server
// serves, and a kind without a CRD has no objects. In addition the Cache watches Namespaces,
// Services, Secrets and ConfigMaps, and, without an Infrastructure, the EndpointSlices, which show
// whether Gateways have proxies. A kind that is forbidden has no objects, or keeps its last
// objects, and Cache.Errors reports it; the other kinds are not affected. HasSynced waits until
// everything may be read, except for Options.Optional.
//
// Of Secrets and ConfigMaps the Cache stores only certificates, their keys and CA certificates.
// Package credentials serves them.
//
// # Access
//
// A Cache needs the verbs list and watch for the kinds of gateway.networking.k8s.io, for
// customresourcedefinitions.apiextensions.k8s.io, namespaces, services, secrets, configmaps and
// endpointslices.discovery.k8s.io, in all namespaces.
package cluster
