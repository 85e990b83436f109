// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"fmt"
	"log/slog"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/guard"
)

// decodeGuarded is decode, and treats a panic as an error of the object.
func (k *kind) decodeGuarded(o *object) (config configstore.Config, found findings) {
	if p := guard.Call(func() { config, found = k.decoder().decode(o) }); p != nil {
		p.Log(k.cache.opts.Logger, "decoding", slog.String("object", k.configKey(objectKey{o.Namespace, o.Name}).Object()))
		found = findings{err: fmt.Errorf("%w: decoding it ended in a %w", configstore.ErrInvalid, p)}
	}
	return config, found
}

// selectsNamespace calls the host's function. If it panics, the object stays in the cache, or out
// of it.
func (c *Cache) selectsNamespace(selected func(string) bool, namespace string, isIn bool) bool {
	is := isIn
	p := guard.Call(func() { is = selected(namespace) })
	p.Log(c.opts.Logger, "Options.Namespaces", slog.String("namespace", namespace))
	return is
}
