// SPDX-License-Identifier: Apache-2.0

package envoy

// Client is the kind of client that a resource is built for.
type Client int

// The kinds of clients.
const (
	// ForEnvoy is the zero value.
	ForEnvoy Client = iota
	// ForGRPC is a gRPC library that speaks xDS itself ("proxyless").
	ForGRPC
)

// String returns "Envoy" or "gRPC".
func (c Client) String() string {
	if c == ForGRPC {
		return "gRPC"
	}
	return "Envoy"
}
