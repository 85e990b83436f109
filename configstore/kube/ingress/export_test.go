// SPDX-License-Identifier: Apache-2.0

package ingress

import (
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/pilotkit/pilotkit/configstore"
)

// NewOffline returns a cache that follows nothing.
func NewOffline() *Cache {
	client, err := kubernetes.NewForConfig(&rest.Config{})
	if err != nil {
		panic(err)
	}
	c := newCache(client, CacheOptions{})
	c.sources = nil
	return c
}

// Follow converts and publishes changes, as a cache does with what it reads of a cluster.
func (c *Cache) Follow(changes ...Change) { c.apply(changes...) }

// Break makes the next conversion panic at an Ingress: it is to be converted, and does not exist.
func (c *Cache) Break(namespace, name string) { c.converter.dirty[Key{namespace, name}] = true }

// BreakValidation makes each further conversion of an Ingress with routes panic.
func (c *Cache) BreakValidation() { c.converter.schemas = configstore.Schemas{} }
