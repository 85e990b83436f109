// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"strings"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// Name names a secret of the host.
type Name struct {
	// Namespace is where the secret is: of a credential its own, of any other that of
	// the proxies that may have it.
	Namespace string
	// Name is "kubernetes://NAME" for a credential, without a namespace, and what
	// proxies ask for in all other cases: "default", for instance. A credential with
	// authorities only may be "kubernetes://NAME-cacert".
	Name string
}

// String returns "namespace/name".
func (n Name) String() string { return n.Namespace + "/" + n.Name }

// request is what a proxy means by the name of a resource.
type request struct {
	envoy.SecretName
	// of are the secrets that may have it, the first one that exists counts; none:
	// it is on the proxy.
	of []Name
}

// newRequest reads the name of a resource that a proxy of a namespace asks for; not
// ok: there can be nothing under it.
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

// allowed reports whether proxies of a namespace may have it; allow is asked for the
// credentials of others.
func (r request) allowed(namespace string, allow func(string, Name) bool) bool {
	if len(r.of) == 0 {
		return true
	}
	credential := r.of[len(r.of)-1]
	return credential.Namespace == namespace || allow(namespace, credential)
}

// key is the name in push requests.
func (n Name) key() xdsupdate.ConfigKey {
	return xdsupdate.ConfigKey{Kind: Kind(), Namespace: n.Namespace, Name: n.Name}
}

// Kind is the kind of secrets in the keys of push requests.
func Kind() configstore.GroupVersionKind {
	return configstore.GroupVersionKind{Version: "v1", Kind: "Secret"}
}
