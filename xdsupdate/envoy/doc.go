// SPDX-License-Identifier: Apache-2.0

// Package envoy has the names of xDS resources, which are those of Istio 1.30, and the kinds of
// clients. Servers, providers and tests of a host refer to resources by them.
//
//	"outbound|80||api.example.com"           | the cluster of a port, its load assignment, and its route configuration for gRPC
//	"outbound|80|v1|api.example.com"         | the cluster of a subset
//	"outbound_.80_.v1_.api.example.com"      | the same cluster as an AUTO_PASSTHROUGH gateway finds it by SNI
//	"api.example.com:80"                     | the API listener of a port, for gRPC
//	"80"                                     | the route configuration of all HTTP services on a port, for Envoys
//	"kubernetes://NAME"                      | the secret with the certificate and key of a credentialName
//	"kubernetes://NAME-cacert"               | the secret with the authorities of a credentialName
//	"file-cert:CERTIFICATE~KEY"              | the secret of two files
//	"file-root:FILE"                         | the secret of a file with authorities; "file-root:system" are those of the operating system
//	"default", "ROOTCA"                      | the secrets of the mesh: the certificate of the workload, and the authorities
//
// All functions may be called from any goroutine.
package envoy
