// SPDX-License-Identifier: Apache-2.0

package routesim

import (
	"fmt"
	"slices"

	security "istio.io/api/security/v1beta1"
)

// Server is what calls to gRPC servers are judged by: PeerAuthentications and
// AuthorizationPolicies, read as Istio's API documents them, as far as such a server can keep to
// them.
type Server struct {
	// Peers are sorted by age, the oldest first.
	Peers []*PeerAuthentication
	// Policies are the policies of its Authorization, which has neither providers nor tokens.
	Policies *Authorization
}

// PeerAuthentication is an object with its spec.
type PeerAuthentication struct {
	Namespace, Name string
	*security.PeerAuthentication
}

// Transport is how a client speaks.
type Transport int

// The ways to speak.
const (
	PlainText Transport = iota
	TLSWithoutCertificate
	MutualTLS
)

// Decide judges a call to a port of a server: whether it can connect, and whether the policies
// admit it. The server sees the headers and addresses of the connection only.
func (s *Server) Decide(p Proxy, port uint32, by Transport, c Call) Decision {
	if mutual := s.MutualTLS(p, port); mutual != (by == MutualTLS) || by == TLSWithoutCertificate {
		return Decision{By: fmt.Sprintf("connections are mutual TLS: %t", mutual)}
	}
	if by == PlainText {
		c.Certificate = nil
	}
	c.Client, c.ServerName, c.Claims, c.Metadata = c.From, "", nil, nil // S9, S15
	policies := s.Policies.of(p)
	reading := *s.Policies
	reading.anyPathCharacter = true
	allowing := false
	for _, o := range policies {
		switch o.GetAction() {
		case security.AuthorizationPolicy_DENY, security.AuthorizationPolicy_CUSTOM: // S4
			if reading.matches(o, c) {
				return Decision{By: fmt.Sprintf("%s/%s denies it", o.Namespace, o.Name)}
			}
		case security.AuthorizationPolicy_ALLOW:
			allowing = true
		default: // S3
		}
	}
	allowed := slices.ContainsFunc(policies, func(o *AuthorizationPolicy) bool {
		return o.GetAction() == security.AuthorizationPolicy_ALLOW && reading.matches(o, c)
	})
	return Decision{Admitted: allowed || !allowing, By: "what is allowed"}
}

// MutualTLS reports whether a port of a workload accepts mutual TLS only; otherwise it accepts
// plain text. PERMISSIVE means mutual TLS if the workload's label declares a certificate, else
// plain text (S10).
func (s *Server) MutualTLS(p Proxy, port uint32) bool {
	switch s.mode(p, port) {
	case security.PeerAuthentication_MutualTLS_STRICT:
		return true
	case security.PeerAuthentication_MutualTLS_DISABLE:
		return false
	default:
		return p.Labels["security.istio.io/tlsMode"] == "istio"
	}
}

// mode is that of the port, else of the workload, else of the namespace, else of the mesh. Of each
// level the oldest policy counts; one that says UNSET has the mode of the level above (S21). A
// policy of the root namespace with a selector is for nobody (S20).
func (s *Server) mode(p Proxy, port uint32) security.PeerAuthentication_MutualTLS_Mode {
	oldest := func(is func(o *PeerAuthentication) bool) *security.PeerAuthentication {
		if i := slices.IndexFunc(s.Peers, is); i >= 0 {
			return s.Peers[i].PeerAuthentication
		}
		return nil
	}
	wide := func(namespace string) func(o *PeerAuthentication) bool {
		return func(o *PeerAuthentication) bool {
			return o.Namespace == namespace && len(o.GetSelector().GetMatchLabels()) == 0
		}
	}
	workload := oldest(func(o *PeerAuthentication) bool {
		if len(o.GetSelector().GetMatchLabels()) == 0 || o.Namespace != p.Namespace || p.Namespace == RootNamespace {
			return false
		}
		for key, value := range o.GetSelector().GetMatchLabels() {
			if p.Labels[key] != value {
				return false
			}
		}
		return true
	})
	for _, m := range []*security.PeerAuthentication_MutualTLS{
		workload.GetPortLevelMtls()[port], workload.GetMtls(), oldest(wide(p.Namespace)).GetMtls(), oldest(wide(RootNamespace)).GetMtls(),
	} {
		if m.GetMode() != security.PeerAuthentication_MutualTLS_UNSET {
			return m.GetMode()
		}
	}
	return security.PeerAuthentication_MutualTLS_PERMISSIVE
}
