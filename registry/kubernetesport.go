// SPDX-License-Identifier: Apache-2.0

package registry

import "strings"

// KubernetesPort is what a Kubernetes Service says of the protocol of one of its ports.
type KubernetesPort struct {
	// Transport is "TCP", "UDP" or "SCTP"; empty stands for TCP.
	Transport, Name string
	// AppProtocol is nil if the Service does not say it.
	AppProtocol *string
	Number      int32
}

// Protocol returns the application protocol of the port, by Istio's rules: UDP stays UDP; else
// AppProtocol decides, else the beginning of the name; a port that neither says anything of and
// that is well known speaks TCP.
func (p KubernetesPort) Protocol() Protocol {
	if p.Transport == string(ProtocolUDP) {
		return ProtocolUDP
	}
	name := p.Name
	if p.AppProtocol != nil {
		name = *p.AppProtocol
		switch name {
		case "kubernetes.io/h2c":
			return ProtocolHTTP2
		case "kubernetes.io/ws":
			return ProtocolHTTP
		case "kubernetes.io/wss":
			return ProtocolHTTPS
		}
	}
	if web := string(ProtocolGRPCWeb); len(name) >= len(web) && strings.EqualFold(name[:len(web)], web) {
		return ProtocolGRPCWeb
	}
	prefix, _, _ := strings.Cut(name, "-")
	protocol := ParseProtocol(prefix)
	if protocol == ProtocolUnsupported && wellKnownTCP(p.Number) {
		return ProtocolTCP
	}
	return protocol
}

// wellKnownTCP: the ports of SMTP, DNS, MySQL and MongoDB, whose clients wait for
// the server to speak first, so that a proxy cannot detect the protocol.
func wellKnownTCP(port int32) bool { return port == 25 || port == 53 || port == 3306 || port == 27017 }
