// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"errors"
	"fmt"
)

// ErrSilentRegistry means that a registry shows services but never reported endpoints to the
// server. What wraps it names the provider and one of its services.
var ErrSilentRegistry = errors.New("shows services but never reported endpoints to this server, so that their clusters stay empty: " +
	"give the registry this server as its updater")

// CheckRegistries says which registries show services in vain: those that take their
// endpoints from load assignments, and whose clusters all stay empty, because none of the
// registries of their provider ever called the server. The error wraps ErrSilentRegistry
// for each; nil: there is none. Any call is enough, so a registry that has no endpoints is not
// silent; nor is a provider for which another reports endpoints, and services without a
// provider are not looked at.
//
// It is about what the last push has read: call it when the registries have synced and Flush
// has returned. A registry that makes no batches (xdsupdate.BatchUpdater), and is about to
// make its first report, may be named until then. It looks at all services.
func (s *Server) CheckRegistries() error {
	var now layers
	s.cache.locked(func() { now = s.cache.layers })
	if now == nil {
		return nil
	}
	services := now[len(now)-1].Provided.(servicesLayer).table // the last provider is that of services
	var out []error
	for _, svc := range services.Silent(s.EndpointIndex()) {
		out = append(out, fmt.Errorf("provider %s, service %s/%s: %w", svc.Attributes.Provider, svc.Attributes.Namespace, svc.Hostname, ErrSilentRegistry))
	}
	return errors.Join(out...)
}
