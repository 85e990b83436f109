// SPDX-License-Identifier: Apache-2.0

package realenvoy

import (
	"sync"

	"github.com/pilotkit/pilotkit/xdsupdate/secrets"
)

// vault has the secrets of a plane, which tests change.
type vault struct {
	mu      sync.Mutex
	secrets map[secrets.Name]*secrets.Secret
	changed func()
}

func (v *vault) get(n secrets.Name) (*secrets.Secret, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if s := v.secrets[n]; s != nil {
		return s, nil
	}
	return nil, secrets.ErrNotFound
}

// set gives the plane a secret; nil takes it away.
func (v *vault) set(namespace, name string, s *secrets.Secret) {
	v.mu.Lock()
	v.secrets[secrets.Name{Namespace: namespace, Name: name}] = s
	v.mu.Unlock()
	v.changed()
}
