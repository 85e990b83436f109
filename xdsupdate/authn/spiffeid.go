// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"errors"
	"fmt"
	"strings"
)

// Identity is the identity of a client.
type Identity struct {
	TrustDomain, Namespace, ServiceAccount string
}

// String returns the SPIFFE ID.
func (i Identity) String() string {
	return "spiffe://" + i.TrustDomain + "/ns/" + i.Namespace + "/sa/" + i.ServiceAccount
}

// The SPIFFE standard limits the lengths of trust domains and IDs, Kubernetes the lengths of
// namespaces and service accounts.
const (
	maxID          = 2048
	maxTrustDomain = 255
	maxNamespace   = 63
	maxAccount     = 253
)

// ParseSPIFFEID parses a SPIFFE ID of exactly the form that Identity.String returns: a parsed ID
// has the same text again. It is as strict as the SPIFFE standard: no upper case in the scheme and
// the trust domain, no escapes, ports, users, queries or fragments, no segments that are empty, "."
// or "..". Namespaces are DNS labels.
func ParseSPIFFEID(text string) (Identity, error) {
	if len(text) > maxID {
		return Identity{}, fmt.Errorf("the SPIFFE ID has %d bytes, more than %d", len(text), maxID)
	}
	id, err := parseSPIFFEID(text)
	if err != nil {
		return Identity{}, fmt.Errorf("SPIFFE ID %s: %w", quote(text), err)
	}
	return id, nil
}

var errForm = errors.New("it must be spiffe://TRUST-DOMAIN/ns/NAMESPACE/sa/SERVICE-ACCOUNT")

func parseSPIFFEID(text string) (Identity, error) {
	rest, ok := strings.CutPrefix(text, "spiffe://")
	parts := strings.Split(rest, "/")
	if !ok || len(parts) != 5 || parts[1] != "ns" || parts[3] != "sa" {
		return Identity{}, errForm
	}
	id := Identity{TrustDomain: parts[0], Namespace: parts[2], ServiceAccount: parts[4]}
	return id, id.check()
}

// check returns an error that describes the first invalid part of an identity.
func (i Identity) check() error {
	switch {
	case !consistsOf(i.TrustDomain, maxTrustDomain, isOfTrustDomain):
		return fmt.Errorf("the trust domain %s must be lower case letters, digits, '.', '-' and '_', at most %d", quote(i.TrustDomain), maxTrustDomain)
	case !isLabel(i.Namespace):
		return fmt.Errorf("the namespace %s must be a DNS label", quote(i.Namespace))
	case !consistsOf(i.ServiceAccount, maxAccount, isOfPath) || i.ServiceAccount == "." || i.ServiceAccount == "..":
		return fmt.Errorf("the service account %s must be letters, digits, '.', '-' and '_', at most %d", quote(i.ServiceAccount), maxAccount)
	}
	return nil
}

// isLabel reports whether a text is a DNS label (RFC 1123).
func isLabel(s string) bool {
	return consistsOf(s, maxNamespace, func(c byte) bool { return isLower(c) || c == '-' }) && s[0] != '-' && s[len(s)-1] != '-'
}

func consistsOf(s string, most int, allowed func(byte) bool) bool {
	for i := range len(s) {
		if !allowed(s[i]) {
			return false
		}
	}
	return s != "" && len(s) <= most
}

func isLower(c byte) bool         { return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' }
func isOfTrustDomain(c byte) bool { return isLower(c) || c == '.' || c == '-' || c == '_' }
func isOfPath(c byte) bool        { return isOfTrustDomain(c) || 'A' <= c && c <= 'Z' }

// maxQuoted is the maximum length of a quotation of a client's text.
const maxQuoted = 200

// quote quotes a client's text, truncated to maxQuoted bytes.
func quote(s string) string {
	if len(s) > maxQuoted {
		return fmt.Sprintf("%q…", s[:maxQuoted])
	}
	return fmt.Sprintf("%q", s)
}
