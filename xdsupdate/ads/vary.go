// SPDX-License-Identifier: Apache-2.0

package ads

import (
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/resource"
)

// An Envoy looks at a secret that it has refused only if it differs from that, and
// accepts it otherwise without having it (Envoy 1.36 and 1.40: SdsApi::onConfigUpdate
// compares hashes, and takes that of a secret before it reads its files). So a refused
// secret is tried again in another encoding of the same, and again in its own.

// vary replaces secrets in a list by their other encodings, every other time that each
// of them is sent again. They keep their versions.
func (r *refusals) vary(list []*resource.State) {
	for i, res := range list {
		if f := r.byName[res.Name]; f != nil {
			if f.varied = !f.varied; f.varied {
				list[i] = otherEncoding(res)
			}
		}
	}
}

// otherEncoding returns a secret that means the same; the same one if there is none.
func otherEncoding(r *resource.State) *resource.State {
	var s tlsv3.Secret
	if proto.Unmarshal(r.Value, &s) != nil {
		return r
	}
	switch t := s.GetType().(type) {
	case *tlsv3.Secret_TlsCertificate:
		if t.TlsCertificate.GetPassword() == nil { // of a key that is not encrypted
			t.TlsCertificate.Password = &core.DataSource{Specifier: &core.DataSource_InlineString{}}
		}
	case *tlsv3.Secret_ValidationContext:
		const byDefault = 100
		if t.ValidationContext.GetMaxVerifyDepth() == nil {
			t.ValidationContext.MaxVerifyDepth = wrapperspb.UInt32(byDefault)
		}
	}
	value, err := resource.Marshal(&s)
	if err != nil {
		return r
	}
	out := &resource.State{TypeURL: r.TypeURL, Name: r.Name, Hash: r.Hash, Value: value}
	out.SetMade()
	return out
}
