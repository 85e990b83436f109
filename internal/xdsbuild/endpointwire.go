// SPDX-License-Identifier: Apache-2.0

package xdsbuild

import (
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/pilotkit/pilotkit/registry"
)

// The functions below return the encoding of lbEndpoint's result for an endpoint with one IP
// address, byte for byte, without building the messages. The metadata of these messages has three
// maps, which are expensive to build and to encode, and a push encodes each endpoint that changed.

// encodeWithIP returns the encoding of lbEndpoint for an endpoint whose only address is an IP
// address.
func encodeWithIP(e *registry.Endpoint) []byte {
	address, a := e.Address(), e.Attributes()
	socket := textSize(address) + 1 + protowire.SizeVarint(uint64(e.EndpointPort))
	inAddress := messageSize(socket)
	inEndpoint := messageSize(inAddress)

	tls, istio := sentTLSMode(a.TLSMode), workload(e)
	metadata := 0
	if tls != "" {
		metadata += messageSize(filterSize(socketMatch, tlsModeKey, tls))
	}
	if istio != "" {
		metadata += messageSize(filterSize(istioFilter, workloadKey, istio))
	}

	out := make([]byte, 0, messageSize(inEndpoint)+2+messageSize(metadata)+8)
	if h := health(e.HealthStatus); h != 0 {
		out = appendNumber(out, 2, uint64(h)) //nolint:gosec // an enum
	}
	if metadata > 0 {
		out = appendHeader(out, 3, metadata)
	}
	if tls != "" {
		out = appendFilter(out, socketMatch, tlsModeKey, tls)
	}
	if istio != "" {
		out = appendFilter(out, istioFilter, workloadKey, istio)
	}
	if a.LbWeight != 0 {
		out = appendHeader(out, 4, 1+protowire.SizeVarint(uint64(a.LbWeight)))
		out = appendNumber(out, 1, uint64(a.LbWeight))
	}
	out = appendHeader(out, 1, inEndpoint) // endpoint; protobuf encodes it last because it is a oneof
	out = appendHeader(out, 1, inAddress)  // address
	out = appendHeader(out, 1, socket)     // socket_address
	out = appendText(out, 2, address)
	out = appendNumber(out, 3, uint64(e.EndpointPort))
	return out
}

// appendFilter appends an entry of filter_metadata: a struct with one text field.
func appendFilter(out []byte, filter, key, value string) []byte {
	text := textSize(value)
	field := textSize(key) + messageSize(text)
	out = appendHeader(out, 1, filterSize(filter, key, value))
	out = appendText(out, 1, filter)
	out = appendHeader(out, 2, messageSize(field)) // Struct
	out = appendHeader(out, 1, field)              // an entry of fields
	out = appendText(out, 1, key)
	out = appendHeader(out, 2, text) // Value
	return appendText(out, 3, value)
}

func filterSize(filter, key, value string) int {
	field := textSize(key) + messageSize(textSize(value))
	return textSize(filter) + messageSize(messageSize(field))
}

// All field numbers are less than 16, so a tag is one byte.

func textSize(s string) int { return messageSize(len(s)) }

// messageSize returns the size of a field with a message of the given size.
func messageSize(bytes int) int { return 1 + protowire.SizeBytes(bytes) }

func appendHeader(out []byte, field protowire.Number, bytes int) []byte {
	return protowire.AppendVarint(protowire.AppendTag(out, field, protowire.BytesType), uint64(bytes)) //nolint:gosec // not negative
}

func appendText(out []byte, field protowire.Number, s string) []byte {
	return protowire.AppendString(protowire.AppendTag(out, field, protowire.BytesType), s)
}

func appendNumber(out []byte, field protowire.Number, n uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(out, field, protowire.VarintType), n)
}
