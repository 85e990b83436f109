// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/pilotkit/pilotkit/configstore"
)

// crds decides, from the CustomResourceDefinitions, which kinds are watched. It is the store of the
// CRDs' reflector; only the reflector's goroutine uses it.
type crds struct {
	cache *Cache
	ctx   context.Context //nolint:containedctx // That of follow, which ends before it does.
	// known contains the CRDs of our kinds by name.
	known map[string]*crd
}

// Add implements cache.ReflectorStore.
func (d *crds) Add(obj any) error { return d.Update(obj) }

// Update implements cache.ReflectorStore.
func (d *crds) Update(obj any) error {
	if c, ok := obj.(*crd); ok {
		d.known[c.Name] = c
		d.apply(c.Name)
	}
	return nil
}

// Delete implements cache.ReflectorStore.
func (d *crds) Delete(obj any) error {
	if c, ok := obj.(*crd); ok {
		delete(d.known, c.Name)
		d.apply(c.Name)
	}
	return nil
}

// Replace implements cache.ReflectorStore.
func (d *crds) Replace(list []any, _ string) error {
	clear(d.known)
	for _, obj := range list {
		if c, ok := obj.(*crd); ok {
			d.known[c.Name] = c
		}
	}
	for _, k := range d.cache.kinds {
		d.applyTo(k)
	}
	d.cache.mu.Lock()
	defer d.cache.mu.Unlock()
	d.cache.crdsListed = true
	return nil
}

// Resync implements cache.ReflectorStore.
func (d *crds) Resync() error { return nil }

// apply begins or ends the watch of a CRD's kind.
func (d *crds) apply(name string) {
	for _, k := range d.cache.kinds {
		if k.crdName() == name {
			d.applyTo(k)
		}
	}
}

func (d *crds) applyTo(k *kind) {
	c := d.known[k.crdName()]
	version := absent
	if c != nil {
		version = slices.IndexFunc(k.versions, c.serves)
	}
	if version == absent {
		k.vanish()
		return
	}
	k.begin(d.ctx, string(c.UID), version)
}

// crdKey returns the key of errors that concern the CRDs.
func crdKey() configstore.ConfigKey {
	return configstore.ConfigKey{Kind: configstore.GroupVersionKind{Group: crdGroup, Version: "v1", Kind: "CustomResourceDefinition"}}
}

// reportCRDs records the outcome of an attempt to list or watch the CRDs. If the server forbids
// that, the cache requests each of the kinds.
func (c *Cache) reportCRDs(ctx context.Context, err error) {
	c.mu.Lock()
	c.crdsForbidden = (apierrors.IsForbidden(err) || isNoSuchPath(err)) && !c.crdsListed
	blind := c.crdsForbidden
	noted := c.crdErr.replace(err)
	c.mu.Unlock()
	if noted {
		c.logKind(crdKey(), err)
	}
	if !blind {
		return
	}
	for _, k := range c.kinds {
		k.begin(ctx, "", 0)
	}
}
