// SPDX-License-Identifier: Apache-2.0

package difference

import (
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/resource"
)

// SotW has no response for a secret that does not exist, and Envoy waits for the secret: for 15
// seconds by default, together with the listener or cluster that references it and, after a change,
// with all other secrets of a listener. An unreadable secret ends the wait for all secrets, without
// any effect on secrets that Envoy has (Envoy 1.36 and 1.40: SdsApi::onConfigUpdateFailed). So an
// Envoy gets an unreadable secret under a missing name, after all existing secrets, and its NACK is
// expected. Until the secret exists, Envoy closes the connections that need it.

// SecretType is the type URL of secrets.
const SecretType = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret" //nolint:gosec // a type URL

// tellsAbsent reports whether clients with some traits get an unreadable resource in place of a
// missing one.
func (s State[H]) tellsAbsent(d Traits) bool {
	return s.TypeURL == SecretType && !d.Delta && !d.GRPC && !s.Wildcard
}

// untold returns markers for the missing names that a client does not know to be missing.
func (s State[H]) untold(from *resource.Snapshot) (out []resource.Edit) {
	for _, name := range Missing(s.Snapshot, s.Topics) {
		if from.Find(name) == nil {
			out = append(out, resource.Edit{Name: name, Resource: resource.NewMarker(s.TypeURL, name, resource.Absent)})
		}
	}
	return out
}

// unreadable returns a secret that every Envoy rejects.
func unreadable(name string) *resource.State {
	r := &resource.State{TypeURL: SecretType, Name: name, Marker: resource.Absent, Build: func() (proto.Message, error) {
		noKeys := &tlsv3.Secret_SessionTicketKeys{SessionTicketKeys: &tlsv3.TlsSessionTicketKeys{}} // one is required
		return &tlsv3.Secret{Name: name, Type: noKeys}, nil
	}}
	r.Exists()
	return r
}
