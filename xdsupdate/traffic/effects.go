// SPDX-License-Identifier: Apache-2.0

package traffic

// Effect is one effect of an object. Both fields are phrases.
type Effect struct {
	// Clients are the affected clients, such as "sidecars and gRPC clients of namespace shop".
	Clients string
	// On is the affected traffic or resource, such as "requests to cart.example.com".
	On string
}

// String returns "clients: on".
func (e Effect) String() string { return e.Clients + ": " + e.On }
