// SPDX-License-Identifier: Apache-2.0

package envoy

// Client says for which kind of client a resource is built.
type Client int

// The kinds of clients.
const (
	// ForEnvoy is the zero value.
	ForEnvoy Client = iota
	// ForGRPC: a gRPC library that speaks xDS itself ("proxyless").
	ForGRPC
)

// String returns "Envoy" or "gRPC".
func (c Client) String() string {
	if c == ForGRPC {
		return "gRPC"
	}
	return "Envoy"
}
