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

// data contains the certificates, keys and CA certificates of Secrets and ConfigMaps. It has no
// String method, because its contents must never be printed.
type data struct {
	mu         sync.Mutex
	secrets    map[gatewayapi.Key]map[string][]byte
	configMaps map[gatewayapi.Key]map[string]string
	changed    func() // nil without a subscriber
}

func newData() *data {
	return &data{secrets: map[gatewayapi.Key]map[string][]byte{}, configMaps: map[gatewayapi.Key]map[string]string{}}
}

// keep records the present state of an object of a kind, and reports whether it has changed.
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

// Secret returns the certificate, key, CA certificates and revocation lists of a Secret under the
// names of its fields, for instance "tls.crt". It returns nil if the Secret does not exist or has no
// such fields. The result is shared and read-only.
func (c *Cache) Secret(key gatewayapi.Key) map[string][]byte {
	c.data.mu.Lock()
	defer c.data.mu.Unlock()
	return c.data.secrets[key]
}

// ConfigMap returns the CA certificates and revocation lists of a ConfigMap under the names of its
// fields, for instance "ca.crt". It returns nil if the ConfigMap does not exist or has no such
// fields. The result is shared and read-only.
func (c *Cache) ConfigMap(key gatewayapi.Key) map[string]string {
	c.data.mu.Lock()
	defer c.data.mu.Unlock()
	return c.data.configMaps[key]
}

// OnData sets the function that is called when the result of Secret or ConfigMap has changed. It is
// called without locks held and must not block. There is at most one; nil removes it.
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
