// SPDX-License-Identifier: Apache-2.0

// Package credentials serves the certificates, keys and CA certificates that Gateway API objects
// reference, by xdsupdate/secrets.
//
//	gateways, err := cluster.New(restConfig)
//	source := credentials.New(gateways.Cache, gateways)
//	provider := secrets.New(configs, secrets.Options{Function: source.Find, Interval: -1})
//	gateways.OnData(provider.Changed)
//	source.OnChange(provider.Changed)
//
// # Access control
//
// The name "kubernetes-gateway://NAMESPACE/NAME" is the reference of a Gateway's listener to a
// Secret. Proxies in the namespace of that Gateway get the certificate with its key. A listener has
// the reference only if the Secret is in the namespace of its own object, or a ReferenceGrant
// permits it. When the last grant is deleted, the listener and its proxies' access to the Secret
// go, too. The same rules apply to the client certificate for backends. Proxies in the namespace of
// the Secret itself get it only if a Gateway there references it.
//
// CA certificates have the same names with the suffix -cacert, and
// "configmap://NAMESPACE/NAME-cacert". The ca.crt that a listener uses to validate clients is
// served to the proxies in the namespace of its Gateway. A ca.crt that a BackendTLSPolicy uses to
// validate backends is served to all proxies, because it is not secret. The revocation lists in
// the field ca.crl of the same object are served with a ca.crt.
//
// The name "kubernetes://NAME", as Istio Gateways reference credentials, is the Secret of the
// proxy's own namespace. ads.Options.Proxy determines the namespace of a proxy: a host that serves
// secrets authenticates its proxies there.
package credentials

import (
	"strings"
	"sync"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/kube/gatewayapi"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/secrets"
)

const (
	gatewayScheme   = "kubernetes-gateway://"
	configMapScheme = "configmap://"
	ownScheme       = "kubernetes://"
	rootsSuffix     = "-cacert"
)

// Data returns the fields of Secrets and ConfigMaps, or nil if the object does not exist. A
// cluster.Cache implements it. The results are read-only.
type Data interface {
	Secret(key gatewayapi.Key) map[string][]byte
	ConfigMap(key gatewayapi.Key) map[string]string
}

// Source resolves secrets by name. Create it with New. All methods may be called from any
// goroutine.
type Source struct {
	data Data

	mu sync.Mutex
	// of contains the names of secrets by config, and uses counts them by the namespace whose
	// proxies may have them: a Gateway's namespace, or "*" for all.
	of      map[configstore.ConfigKey][]use
	uses    map[use]int
	changed func()
}

// use is the permission for the proxies of a namespace, or of all for "*", to have a secret.
type use struct{ name, namespace string }

const everyNamespace = "*"

// New returns a source of the secrets that the configs of a cache reference. It subscribes to the
// cache, and must be called before the cache runs.
func New(cache *gatewayapi.Cache, data Data) *Source {
	s := &Source{data: data, of: map[configstore.ConfigKey][]use{}, uses: map[use]int{}}
	s.mu.Lock() // The objects come before their changes.
	defer s.mu.Unlock()
	objects, _ := cache.Subscribe([]configstore.GroupVersionKind{istio.Gateway, istio.DestinationRule}, s.follow)
	for _, o := range objects {
		s.replace(o.Key(), usesOf(o))
	}
	return s
}

// OnChange sets the function that is called when proxies of a namespace may have other secrets than
// before. It must not block. There is at most one; nil removes it.
func (s *Source) OnChange(changed func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changed = changed
}

func (s *Source) follow(batch []configstore.Change) {
	s.mu.Lock()
	for _, change := range batch {
		var next []use
		if change.Event != configstore.EventDelete {
			next = usesOf(change.Curr)
		}
		s.replace(change.Curr.Key(), next)
	}
	changed := s.changed
	s.mu.Unlock()
	if changed != nil {
		changed()
	}
}

func (s *Source) replace(key configstore.ConfigKey, next []use) {
	for _, u := range s.of[key] {
		if s.uses[u]--; s.uses[u] == 0 {
			delete(s.uses, u)
		}
	}
	for _, u := range next {
		s.uses[u]++
	}
	if s.of[key] = next; len(next) == 0 {
		delete(s.of, key)
	}
}

// usesOf returns the permissions that a config implies.
func usesOf(c *configstore.Config) (out []use) {
	switch spec := c.Spec.(type) {
	case *networking.Gateway:
		namespace := gatewayapi.GatewayOf(c).Namespace
		if name := gatewayapi.BackendCertificateOf(c); name != "" {
			out = append(out, use{envoy.CredentialName(name), namespace})
		}
		for _, server := range spec.GetServers() {
			for _, name := range envoy.ServerSecrets(server.GetTls()) {
				out = append(out, use{name, namespace})
			}
		}
	case *networking.DestinationRule:
		policies := []*networking.ClientTLSSettings{spec.GetTrafficPolicy().GetTls()}
		for _, port := range spec.GetTrafficPolicy().GetPortLevelSettings() {
			policies = append(policies, port.GetTls())
		}
		for _, tls := range policies {
			if name := tls.GetCredentialName(); name != "" {
				out = append(out, use{envoy.CredentialRootsName(name), everyNamespace})
			}
		}
	}
	return out
}

func (s *Source) allowed(name, namespace string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.uses[use{name, namespace}] > 0 || strings.HasSuffix(name, rootsSuffix) && s.uses[use{name, everyNamespace}] > 0
}

// Find returns a secret, for secrets.Options.Function. It returns secrets.ErrNotFound if the secret
// does not exist, or if the proxies of the namespace may not have it.
func (s *Source) Find(n secrets.Name) (*secrets.Secret, error) {
	name, roots := strings.CutSuffix(n.Name, rootsSuffix)
	var out secrets.Secret
	switch {
	case strings.HasPrefix(name, ownScheme):
		// "NAME-cacert" is a separate Secret, which the provider requests first.
		data := s.data.Secret(gatewayapi.Key{Namespace: n.Namespace, Name: strings.TrimPrefix(n.Name, ownScheme)})
		out = secrets.Secret{Certificate: certificateIn(data), Key: keyIn(data), Authorities: authoritiesIn(data), Revocations: revocationsIn(data)}
	case !s.allowed(n.Name, n.Namespace):
		return nil, secrets.ErrNotFound
	case strings.HasPrefix(name, gatewayScheme):
		data := s.data.Secret(keyOf(strings.TrimPrefix(name, gatewayScheme)))
		if roots {
			out.Authorities, out.Revocations = authoritiesIn(data), revocationsIn(data)
		} else {
			out.Certificate, out.Key = certificateIn(data), keyIn(data)
		}
	case strings.HasPrefix(name, configMapScheme) && roots:
		data := s.data.ConfigMap(keyOf(strings.TrimPrefix(name, configMapScheme)))
		out.Authorities, out.Revocations = authoritiesIn(data), revocationsIn(data)
	}
	if len(out.Certificate)+len(out.Key)+len(out.Authorities) == 0 {
		return nil, secrets.ErrNotFound
	}
	return &out, nil
}

// keyOf parses "NAMESPACE/NAME".
func keyOf(text string) gatewayapi.Key {
	namespace, name, _ := strings.Cut(text, "/")
	return gatewayapi.Key{Namespace: namespace, Name: name}
}

// The fields of Secrets and ConfigMaps have the names of Kubernetes, or Istio's own.

func certificateIn(data map[string][]byte) []byte { return first(data, "tls.crt", "cert") }

func keyIn(data map[string][]byte) secrets.PrivateKey { return first(data, "tls.key", "key") }

func authoritiesIn[T text](data map[string]T) []byte { return first(data, "ca.crt", "cacert") }

func revocationsIn[T text](data map[string]T) []byte { return first(data, "ca.crl", "crl") }

type text interface{ string | []byte }

func first[T text](data map[string]T, names ...string) []byte {
	for _, name := range names {
		if len(data[name]) > 0 {
			return []byte(data[name])
		}
	}
	return nil
}
