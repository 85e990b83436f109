// SPDX-License-Identifier: Apache-2.0

package difference

import (
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/resource"
)

// With SotW there is no answer that says of a secret that there is none, and an Envoy
// waits for it: for 15 seconds by default, with the listener or cluster that names it
// and, after a change, with all the others of a listener. But it ends the wait of all
// secrets, without any harm to those that it has, if it is sent one that it cannot read
// (Envoy 1.36 and 1.40: SdsApi::onConfigUpdateFailed). So an Envoy is sent such a secret,
// once it has all that there are, under a name of which there is none; that it refuses
// this is the answer that is expected. Until the secret is there it closes
// the connections that need it.

// SecretType is the type URL of secrets.
const SecretType = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret" //nolint:gosec // a type URL

// tellsAbsent reports whether clients with some traits are told that there is no resource by
// one that they cannot read.
func (s State[H]) tellsAbsent(d Traits) bool {
	return s.TypeURL == SecretType && !d.Delta && !d.GRPC && !s.Wildcard
}

// untold returns the names of which there is nothing, as what a client has that knows.
func (s State[H]) untold(from *resource.Snapshot) []resource.Edit {
	var out []resource.Edit
	for _, name := range s.missing() {
		if from.Find(name) == nil {
			out = append(out, resource.Edit{Name: name, Resource: resource.NewMarker(s.TypeURL, name, resource.Absent)})
		}
	}
	return out
}

// tell adds to what a client is sent, after all others, that there is nothing under the
// names that it does not know this of yet.
func (s State[H]) tell(from *resource.Snapshot, edits *[]resource.Edit, changed *[]*resource.State) {
	if untold := s.untold(from); len(untold) > 0 {
		*edits = append(*edits, untold...)
		*changed = append(*changed, unreadable(untold[0].Name))
	}
}

// unreadable returns a secret that no Envoy takes.
func unreadable(name string) *resource.State {
	r := &resource.State{TypeURL: SecretType, Name: name, Marker: resource.Absent, Build: func() (proto.Message, error) {
		noKeys := &tlsv3.Secret_SessionTicketKeys{SessionTicketKeys: &tlsv3.TlsSessionTicketKeys{}} // one is required
		return &tlsv3.Secret{Name: name, Type: noKeys}, nil
	}}
	r.Exists()
	return r
}
