// SPDX-License-Identifier: Apache-2.0

package envoyproxy

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	cares "github.com/envoyproxy/go-control-plane/envoy/extensions/network/dns_resolver/cares/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
)

// Options say how an Envoy starts.
type Options struct {
	// Program is the newest one by default.
	Program Program
	Node    Node
	// Server is the address of an ADS server, HOST:PORT; "" for none.
	Server string
	// Delta: the Envoy uses the incremental protocol.
	Delta bool
	// OwnListeners: all listeners are the program's; the server is not asked for any.
	OwnListeners bool
	// ListenersFile is a file with listeners made by the test, in place of the server's listeners:
	// see WriteListeners.
	ListenersFile string
	// Static resources of the bootstrap.
	Listeners []*listenerv3.Listener
	Clusters  []*clusterv3.Cluster
	Secrets   []*tlsv3.Secret
	// Runtime has values of Envoy's runtime, for example RegexProgramSize.
	Runtime map[string]any
	// Resolver configures DNS. Nil uses the resolver of the system.
	Resolver *cares.CaresDnsResolverConfig
	// LogLevel is "warning" by default.
	LogLevel string
	// Concurrency is the number of worker threads, 1 by default.
	Concurrency int
	// Dir is the working directory, by default one of the test.
	Dir string
	// Args are further flags.
	Args []string
}

// RegexProgramSize are values of the runtime that let regular expressions have
// programs of a size; stock Envoy refuses those over 100.
func RegexProgramSize(size int) map[string]any {
	return map[string]any{"re2.max_program_size.error_level": size}
}
