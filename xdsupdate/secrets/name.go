// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"strings"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// Name is the key of a secret.
type Name struct {
	// Namespace is the credential's own namespace. For any other secret it is the namespace of the
	// proxies that may have it.
	Namespace string
	// Name is "kubernetes://NAME" for a credential, without a namespace. For any other secret it is
	// the resource name, such as "default". A credential that has only authorities may be
	// "kubernetes://NAME-cacert".
	Name string
}

// String returns "namespace/name".
func (n Name) String() string { return n.Namespace + "/" + n.Name }

// request is a parsed resource name.
type request struct {
	envoy.SecretName
	// of are the secrets that the name may resolve to; the first one that exists is used. Empty if
	// the secret is a file on the proxy's host.
	of []Name
}

// newRequest parses a resource name that a proxy of a namespace subscribes to. It returns false if
// no secret can have this name.
func newRequest(namespace, resource string) (request, bool) {
	parsed, known := envoy.ParseSecretName(resource)
	r := request{SecretName: parsed}
	switch {
	case !known || parsed.Credential == "" && parsed.Certificate == "" && parsed.Authorities == "":
		r.of = []Name{{namespace, resource}}
		return r, resource != ""
	case parsed.Credential == "":
		return r, true
	}
	in, name := namespace, parsed.Credential
	if ns, rest, ok := strings.Cut(name, "/"); ok {
		in, name = ns, rest
	}
	own := Name{in, envoy.CredentialName(name)}
	if name == "" || in == "" || strings.Contains(name, "/") {
		return r, false
	}
	if r.Roots {
		r.of = append(r.of, Name{in, envoy.CredentialRootsName(name)})
	}
	r.of = append(r.of, own)
	return r, true
}

// allowed reports whether proxies of a namespace may have the secret. It calls allow for a
// credential of another namespace.
func (r request) allowed(namespace string, allow func(string, Name) bool) bool {
	if len(r.of) == 0 {
		return true
	}
	credential := r.of[len(r.of)-1]
	return credential.Namespace == namespace || allow(namespace, credential)
}

// key returns the key of the secret in push requests.
func (n Name) key() xdsupdate.ConfigKey {
	return xdsupdate.ConfigKey{Kind: Kind(), Namespace: n.Namespace, Name: n.Name}
}

// Kind is the kind of secrets in the keys of push requests.
func Kind() configstore.GroupVersionKind {
	return configstore.GroupVersionKind{Version: "v1", Kind: "Secret"}
}
