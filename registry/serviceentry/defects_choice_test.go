// SPDX-License-Identifier: Apache-2.0

package serviceentry_test

import (
	"testing"
	"time"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/registry/serviceentry"
)

func TestDefectGetServiceIsArbitrary(t *testing.T) {
	t.Parallel()
	at := func(seconds int64, c configstore.Config) configstore.Config {
		c.CreationTimestamp = time.Unix(seconds, 0)
		return c
	}
	s := newSystem(t, serviceentry.Options{})
	chosen := func() string {
		service := s.registry.GetService("a.com")
		return service.Attributes.Namespace + "/" + service.Attributes.ObjectName
	}
	s.apply(at(5, inNamespace("a", entry("c", nil, "a.com"))))
	diff(t, "the only one", chosen(), "a/c")
	s.apply(at(5, inNamespace("c", entry("a", nil, "a.com"))), at(5, inNamespace("b", entry("a", nil, "a.com"))))
	diff(t, "the first namespace, then name", chosen(), "a/c")
	s.apply(at(4, inNamespace("z", entry("z", nil, "a.com"))))
	diff(t, "the oldest", chosen(), "z/z")
	s.delete(istio.ServiceEntry, "z", "z")
	diff(t, "without the oldest", chosen(), "a/c")
}
