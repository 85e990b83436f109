// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"slices"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// references are the names of secrets that configs reference.
type references struct {
	of map[configstore.ConfigKey][]string
	// uses is the number of configs that reference a name.
	uses map[string]int
}

func newReferences() *references {
	return &references{of: make(map[configstore.ConfigKey][]string), uses: make(map[string]int)}
}

// set replaces the references of a config, and reports whether a name was added or removed.
func (r *references) set(key configstore.ConfigKey, names []string) (changed bool) {
	for _, n := range names {
		r.uses[n]++
		changed = changed || r.uses[n] == 1
	}
	for _, n := range r.of[key] {
		if r.uses[n]--; r.uses[n] == 0 {
			delete(r.uses, n)
			changed = true
		}
	}
	if delete(r.of, key); len(names) > 0 {
		r.of[key] = names
	}
	return changed
}

// namesIn returns the distinct names of secrets that a config references. The config may be nil.
func namesIn(c *configstore.Config) []string {
	if c == nil {
		return nil
	}
	var out []string
	add := func(tls *networking.ClientTLSSettings) { out = append(out, clientSecrets(tls)...) }
	addPolicy := func(p *networking.TrafficPolicy) {
		add(p.GetTls())
		for _, port := range p.GetPortLevelSettings() {
			add(port.GetTls())
		}
	}
	switch spec := c.Spec.(type) {
	case *networking.Gateway:
		if name := c.Annotations[istio.AnnotationBackendCertificate]; name != "" {
			out = append(out, envoy.CredentialName(name))
		}
		for _, s := range spec.GetServers() {
			out = append(out, envoy.ServerSecrets(s.GetTls())...)
		}
	case *networking.DestinationRule:
		addPolicy(spec.GetTrafficPolicy())
		for _, s := range spec.GetSubsets() {
			addPolicy(s.GetTrafficPolicy())
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// clientSecrets returns the secrets that a cluster with these settings may reference. A name
// without a reference does no harm, because secrets are looked up only when a proxy subscribes.
func clientSecrets(tls *networking.ClientTLSSettings) []string {
	var out []string
	switch tls.GetMode() {
	case networking.ClientTLSSettings_SIMPLE, networking.ClientTLSSettings_MUTUAL:
	default:
		return nil // the names of the mesh's certificates always exist
	}
	if name := tls.GetCredentialName(); name != "" {
		out = append(out, envoy.CredentialName(name), envoy.CredentialRootsName(name))
	}
	if tls.GetClientCertificate() != "" {
		out = append(out, envoy.FileCertificateName(tls.GetClientCertificate(), tls.GetPrivateKey()))
	}
	if roots := tls.GetCaCertificates(); roots != "" {
		return append(out, envoy.FileRootsName(roots))
	}
	return append(out, envoy.SystemRoots)
}
