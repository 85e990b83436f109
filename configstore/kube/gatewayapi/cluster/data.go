// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"maps"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/pilotkit/pilotkit/configstore/kube/gatewayapi"
	"github.com/pilotkit/pilotkit/configstore/kube/internal/follow"
)

// data keeps the certificates, keys and authorities of Secrets and ConfigMaps. It has no String:
// nothing of it is ever shown.
type data struct {
	mu         sync.Mutex
	secrets    map[gatewayapi.Key]map[string][]byte
	configMaps map[gatewayapi.Key]map[string]string
	changed    func() // nil: nobody is called
}

func newData() *data {
	return &data{secrets: map[gatewayapi.Key]map[string][]byte{}, configMaps: map[gatewayapi.Key]map[string]string{}}
}

// keep takes the present state of an object of a kind, and reports whether it is another one than
// before.
func (d *data) keep(kind string, change follow.Change) (changed bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	key := gatewayapi.Key{Namespace: change.Object.GetNamespace(), Name: change.Object.GetName()}
	switch kind {
	case kindSecrets:
		var next map[string][]byte
		if o, ok := change.Object.(*corev1.Secret); ok && !change.Gone {
			next = o.Data
		}
		changed = !maps.EqualFunc(d.secrets[key], next, bytes.Equal)
		put(d.secrets, key, next)
	case kindConfigMaps:
		var next map[string]string
		if o, ok := change.Object.(*corev1.ConfigMap); ok && !change.Gone {
			next = o.Data
		}
		changed = !maps.Equal(d.configMaps[key], next)
		put(d.configMaps, key, next)
	}
	return changed
}

func put[V any](in map[gatewayapi.Key]map[string]V, key gatewayapi.Key, of map[string]V) {
	if len(of) == 0 {
		delete(in, key)
	} else {
		in[key] = of
	}
}

// Secret returns the certificate, key and authorities of a Secret under the names of its fields,
// "tls.crt" for instance; nil: it has none, or does not exist. They are shared and read-only.
func (c *Cache) Secret(key gatewayapi.Key) map[string][]byte {
	c.data.mu.Lock()
	defer c.data.mu.Unlock()
	return c.data.secrets[key]
}

// ConfigMap returns the authorities of a ConfigMap under the names of its fields, "ca.crt" or
// "cacert"; nil: it has none, or does not exist. They are shared and read-only.
func (c *Cache) ConfigMap(key gatewayapi.Key) map[string]string {
	c.data.mu.Lock()
	defer c.data.mu.Unlock()
	return c.data.configMaps[key]
}

// OnData has changed called when Secret or ConfigMap would answer otherwise than before, with no
// lock held; it must not block. There is one at most; nil: nobody is called any more.
func (c *Cache) OnData(changed func()) {
	c.data.mu.Lock()
	defer c.data.mu.Unlock()
	c.data.changed = changed
}

func (d *data) notify() {
	d.mu.Lock()
	changed := d.changed
	d.mu.Unlock()
	if changed != nil {
		changed()
	}
}
