// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"

	"github.com/pilotkit/pilotkit/configstore/kube/gatewayapi"
	"github.com/pilotkit/pilotkit/configstore/kube/internal/follow"
)

const (
	kindSecrets    = "secrets"
	kindConfigMaps = "configmaps"
)

// coreObject is a Kubernetes kind that a Converter reads.
type coreObject interface {
	*corev1.Namespace | *corev1.Service | *corev1.Secret | *corev1.ConfigMap | *discoveryv1.EndpointSlice
	gatewayapi.Object
	metav1.Object
	runtime.Object
}

// newSources returns the sources of the Kubernetes kinds that the cache needs.
func (c *Cache) newSources(client kubernetes.Interface, o *Options) []*follow.Source {
	core, all := client.CoreV1(), metav1.NamespaceAll
	out := []*follow.Source{
		coreSource(c, o, "namespaces", client, core.Namespaces(), &corev1.Namespace{}, nil),
		coreSource(c, o, "services", client, core.Services(all), &corev1.Service{}, nil),
		coreSource(c, o, kindSecrets, client, core.Secrets(all), &corev1.Secret{}, trimSecret),
		coreSource(c, o, kindConfigMaps, client, core.ConfigMaps(all), &corev1.ConfigMap{}, trimConfigMap),
	}
	if !o.Provided && o.Infrastructure == nil { // The endpoints of its Service show whether a Gateway has proxies.
		out = append(out, coreSource(c, o, "endpointslices", client, client.DiscoveryV1().EndpointSlices(all), &discoveryv1.EndpointSlice{}, nil))
	}
	return out
}

func coreSource[P coreObject, L runtime.Object](
	c *Cache, o *Options, kind string, client any, from follow.Resource[L], example P, trim func(runtime.Object),
) *follow.Source {
	return follow.New(client, from, example, follow.Options{
		Kind: kind, Optional: slices.Contains(o.Optional, kind), MaxBackoff: o.MaxBackoff, Logger: o.Logger,
		Trim: func(object runtime.Object) {
			if meta, ok := object.(metav1.Object); ok {
				trimMeta(meta)
			}
			if trim != nil {
				trim(object)
			}
		},
		Apply: func(batch []follow.Change) {
			changes := make([]gatewayapi.Change, 0, len(batch))
			touched := false
			for _, change := range batch {
				ns, name := change.Object.GetNamespace(), change.Object.GetName()
				if object, ok := change.Object.(P); ok && !change.Gone {
					changes = append(changes, gatewayapi.Set(object))
				} else {
					changes = append(changes, gatewayapi.Delete[P](ns, name))
				}
				touched = c.data.keep(kind, change) || touched
			}
			c.Apply(changes...)
			if touched {
				c.data.notify()
			}
		},
	})
}

// exportTo is the annotation of Services that a Converter reads.
const exportTo = "networking.istio.io/exportTo"

// trimMeta drops the metadata that a Converter does not read.
func trimMeta(meta metav1.Object) {
	meta.SetManagedFields(nil)
	keep(meta.GetAnnotations(), []string{exportTo})
}

// rootKeys returns the fields of Secrets and ConfigMaps that contain CA certificates and their revocation
// lists: the names of Kubernetes, and Istio's own.
func rootKeys() []string { return []string{"ca.crt", "ca.crl", "cacert", "crl"} }

// usedKeys returns the fields of Secrets that contain certificates, under both kinds of names.
func usedKeys() []string {
	return append(rootKeys(), corev1.TLSCertKey, corev1.TLSPrivateKeyKey, "cert", "key")
}

// trimSecret drops everything except certificates, their keys, CA certificates and revocation lists.
func trimSecret(object runtime.Object) {
	if o, ok := object.(*corev1.Secret); ok {
		keep(o.Data, usedKeys())
	}
}

// trimConfigMap drops everything except CA certificates and revocation lists.
func trimConfigMap(object runtime.Object) {
	if o, ok := object.(*corev1.ConfigMap); ok {
		o.BinaryData = nil
		keep(o.Data, rootKeys())
	}
}

func keep[V any](data map[string]V, names []string) {
	maps.DeleteFunc(data, func(name string, _ V) bool { return !slices.Contains(names, name) })
}
