// SPDX-License-Identifier: Apache-2.0

// Package credentials serves the certificates, keys and authorities that Gateway API objects name,
// by xdsupdate/secrets.
//
//	gateways, err := cluster.New(restConfig)
//	source := credentials.New(gateways.Cache, gateways)
//	generator := secrets.New(secrets.Options{Function: source.Find, Interval: -1})
//	gateways.OnData(generator.Changed)
//	source.OnChange(generator.Changed)
//
// # Who may have what
//
// Of "kubernetes-gateway://NAMESPACE/NAME", the name that the listener of a Gateway gives a Secret,
// proxies of the namespace of that Gateway have the certificate with its key. A listener has the name
// only if the Secret is in the namespace of its own object, or a ReferenceGrant allows it: when the
// last grant goes, so does the listener, and with it the Secret of its proxies. So it is with
// the certificate that they show to backends. Proxies of the
// namespace of the Secret itself have it only if a Gateway there names it.
//
// Of the authorities ("…-cacert" of the same names, and "configmap://NAMESPACE/NAME-cacert") that a
// listener validates clients with, the proxies of that Gateway have ca.crt, and of those that
// a BackendTLSPolicy validates backends with, all proxies: they are no secret.
//
// "kubernetes://NAME", as Gateways of Istio name credentials, is the Secret of the proxy's own
// namespace. Which namespace a proxy has is what ads.Options.Proxy has found out: a host with
// secrets authenticates its proxies there.
package credentials

import (
	"cmp"
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

// Data has the fields of Secrets and ConfigMaps; nil: there is no such object. A cluster.Cache is
// one. What it returns is read-only.
type Data interface {
	Secret(key gatewayapi.Key) map[string][]byte
	ConfigMap(key gatewayapi.Key) map[string]string
}

// Source finds secrets by their names. Create it with New. All methods may be called from any
// goroutine.
type Source struct {
	data Data

	mu sync.Mutex
	// of are the names of secrets in configs, and uses in which namespaces proxies may have
	// them: those of Gateways, or "*" for all.
	of      map[configstore.ConfigKey][]use
	uses    map[use]int
	changed func()
}

// use is a name that proxies of a namespace may have; "*": of all.
type use struct{ name, namespace string }

const everyNamespace = "*"

// New returns the source of what the configs of a cache name. It follows the cache from now on,
// and must be made before that runs.
func New(cache *gatewayapi.Cache, data Data) *Source {
	s := &Source{data: data, of: map[configstore.ConfigKey][]use{}, uses: map[use]int{}}
	cache.SubscribeBatch([]configstore.GroupVersionKind{istio.Gateway, istio.DestinationRule}, s.follow)
	return s
}

// OnChange has changed called when proxies of a namespace may have other secrets than before. It must
// not block. There is one at most; nil: nobody is called any more.
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

// usesOf returns what proxies may have because of a config.
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

// Find returns a secret, for secrets.Options.Function; secrets.ErrNotFound if there is none, or the
// proxies of the namespace may not have it.
func (s *Source) Find(n secrets.Name) (*secrets.Secret, error) {
	name, roots := strings.CutSuffix(n.Name, rootsSuffix)
	var out secrets.Secret
	switch {
	case strings.HasPrefix(name, ownScheme):
		// "NAME-cacert" is a Secret of its own, which the generator asks for first.
		data := s.data.Secret(gatewayapi.Key{Namespace: n.Namespace, Name: strings.TrimPrefix(n.Name, ownScheme)})
		out = secrets.Secret{Certificate: certificateIn(data), Key: keyIn(data), Authorities: authoritiesIn(data)}
	case !s.allowed(n.Name, n.Namespace):
		return nil, secrets.ErrNotFound
	case strings.HasPrefix(name, gatewayScheme):
		data := s.data.Secret(keyOf(strings.TrimPrefix(name, gatewayScheme)))
		if roots {
			out.Authorities = authoritiesIn(data)
		} else {
			out.Certificate, out.Key = certificateIn(data), keyIn(data)
		}
	case strings.HasPrefix(name, configMapScheme) && roots:
		data := s.data.ConfigMap(keyOf(strings.TrimPrefix(name, configMapScheme)))
		out.Authorities = []byte(cmp.Or(data["ca.crt"], data["cacert"]))
	}
	if len(out.Certificate)+len(out.Key)+len(out.Authorities) == 0 {
		return nil, secrets.ErrNotFound
	}
	return &out, nil
}

// keyOf reads "NAMESPACE/NAME".
func keyOf(text string) gatewayapi.Key {
	namespace, name, _ := strings.Cut(text, "/")
	return gatewayapi.Key{Namespace: namespace, Name: name}
}

// The fields of Secrets have the names of Kubernetes, or Istio's own.

func certificateIn(data map[string][]byte) []byte { return first(data, "tls.crt", "cert") }

func keyIn(data map[string][]byte) secrets.PrivateKey { return first(data, "tls.key", "key") }

func authoritiesIn(data map[string][]byte) []byte { return first(data, "ca.crt", "cacert") }

func first(data map[string][]byte, names ...string) []byte {
	for _, name := range names {
		if len(data[name]) > 0 {
			return data[name]
		}
	}
	return nil
}
