// SPDX-License-Identifier: Apache-2.0

// Package mcp carries configs over xDS, in the form in which Istio's control
// planes exchange them (MCP over xDS).
//
// # Wire format
//
// The type URL of a kind is "group/version/Kind", literally, with "core" for the
// empty group. Each resource is an istio.mcp.v1alpha1.Resource in an Any:
//
//	metadata.name         "namespace/name"; "/name" for cluster-scoped kinds
//	metadata.version      the ResourceVersion of the sender's store
//	metadata.create_time  the CreationTimestamp
//	metadata.labels, metadata.annotations
//	body                  the spec, in an Any
//
// Status, UID, Domain, OwnerReferences and Generation do not travel. The format and
// the requests are those of Istio 1.31 (pkg/adsc, pilot/pkg/networking/apigen).
//
// # Concurrency
//
// All methods may be called from any goroutine.
package mcp
