// SPDX-License-Identifier: Apache-2.0

package xdsbuild

import (
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/pilotkit/pilotkit/registry"
)

// encodeWithIP returns the encoding of lbEndpoint's result for an endpoint whose only address is an IP
// address, byte for byte, without building the messages. The metadata of these messages has three
// maps, which are expensive to build and to encode, and a push encodes each endpoint that changed.
func encodeWithIP(e *registry.Endpoint) []byte {
	address, a := e.Address(), e.Attributes()
	tls, istio := sentTLSMode(a.TLSMode), workload(e)
	out := make([]byte, 0, 120+len(address)+len(istio))
	if h := health(e.HealthStatus); h != 0 {
		out = appendNumber(out, 2, uint64(h)) //nolint:gosec // an enum
	}
	if tls+istio != "" {
		out = appendMessage(out, 3, func(out []byte) []byte {
			return appendFilter(appendFilter(out, socketMatch, tlsModeKey, tls), istioFilter, workloadKey, istio)
		})
	}
	if a.LbWeight != 0 {
		out = appendMessage(out, 4, func(out []byte) []byte { return appendNumber(out, 1, uint64(a.LbWeight)) })
	}
	return appendMessage(out, 1, func(out []byte) []byte { // endpoint; protobuf encodes it last because it is a oneof
		return appendMessage(out, 1, func(out []byte) []byte { // address
			return appendMessage(out, 1, func(out []byte) []byte { // socket_address
				return appendNumber(appendText(out, 2, address), 3, uint64(e.EndpointPort))
			})
		})
	})
}

// appendFilter appends an entry of filter_metadata, a struct with one text field, unless the text is empty.
func appendFilter(out []byte, filter, key, value string) []byte {
	if value == "" {
		return out
	}
	return appendEntry(out, filter, func(out []byte) []byte { return appendTextEntry(out, key, value) })
}

func appendText(out []byte, field protowire.Number, s string) []byte {
	return protowire.AppendString(protowire.AppendTag(out, field, protowire.BytesType), s)
}

func appendNumber(out []byte, field protowire.Number, n uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(out, field, protowire.VarintType), n)
}
