// SPDX-License-Identifier: Apache-2.0

package routesim

import (
	"fmt"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	tls "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
)

// Door is the listener of a gRPC server, as gRPC is documented to read it (gRFC A36, A29, A41): one
// filter chain for all connections, what connections it takes, and what its filters make of calls.
type Door struct {
	*Gate
	mutualTLS bool
}

// NewDoor reads a listener. Unknown content is an error.
func NewDoor(l *listenerv3.Listener) (*Door, error) {
	if len(l.GetFilterChains()) != 1 || l.GetDefaultFilterChain() != nil || l.GetFilterChains()[0].GetFilterChainMatch() != nil {
		return nil, fmt.Errorf("listeners with several filter chains are not known here: %v", l)
	}
	chain := l.GetFilterChains()[0]
	gate, err := NewGate(chain)
	if err != nil {
		return nil, err
	}
	d := &Door{Gate: gate}
	if chain.GetTransportSocket() == nil {
		return d, nil
	}
	var context tls.DownstreamTlsContext
	if err := chain.GetTransportSocket().GetTypedConfig().UnmarshalTo(&context); err != nil {
		return nil, err
	}
	common := context.GetCommonTlsContext()
	authorities := common.GetCombinedValidationContext().GetDefaultValidationContext().GetCaCertificateProviderInstance()
	if authorities == nil {
		authorities = common.GetValidationContext().GetCaCertificateProviderInstance()
	}
	if !context.GetRequireClientCertificate().GetValue() || authorities.GetInstanceName() != "default" ||
		common.GetTlsCertificateProviderInstance().GetInstanceName() != "default" {
		return nil, fmt.Errorf("the TLS context %v is not known here", &context)
	}
	d.mutualTLS = true
	return d, nil
}

// Enter returns the outcome of a call over a connection.
func (d *Door) Enter(by Transport, c Call) (Decision, error) {
	if by == TLSWithoutCertificate || d.mutualTLS != (by == MutualTLS) {
		return Decision{By: fmt.Sprintf("connections are mutual TLS: %t", d.mutualTLS)}, nil
	}
	if by == PlainText {
		c.Certificate = nil
	}
	c.Client, c.ServerName = c.From, "" // gRFC A41
	return d.Decide(c)
}
