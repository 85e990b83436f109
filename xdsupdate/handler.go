// SPDX-License-Identifier: Apache-2.0

package xdsupdate

import (
	"strings"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/registry"
)

// StatusReporter is notified which resources are on their way to proxies.
type StatusReporter interface {
	// AddInProgressResource is called when a resource was added or updated.
	AddInProgressResource(resource configstore.Config)
	// DeleteInProgressResource is called when a resource was deleted, with its
	// last known state.
	DeleteInProgressResource(resource configstore.Config)
}

// ConfigHandler returns a handler of config events that asks for a full push of
// the object that changed. A nil updater is Discard. The reporter, which may be nil, is
// called for every event before.
//
// By the rules of Istio 1.30 an update asks for no push if the object is of an
// istio.io group, its spec is the same, and neither state has a label or an
// annotation with "istio.io" in its key. Register the handler for all kinds that
// no registry owns: ServiceEntry, WorkloadEntry and WorkloadGroup are pushed by
// theirs.
func ConfigHandler(updater XDSUpdater, reporter StatusReporter) configstore.EventHandler {
	updater = Multi(updater)
	return func(old, curr configstore.Config, event configstore.Event) {
		defer func() { // also if the reporter panics
			if event != configstore.EventUpdate || relevant(old, curr) {
				updater.ConfigUpdate(&PushRequest{
					Full: true, ConfigsUpdated: KeySet(curr.Key()), Reason: map[TriggerReason]int{ReasonConfig: 1},
				})
			}
		}()
		report(reporter, curr, event)
	}
}

func report(reporter StatusReporter, curr configstore.Config, event configstore.Event) {
	switch {
	case reporter == nil:
	case event == configstore.EventDelete:
		reporter.DeleteInProgressResource(curr)
	default:
		reporter.AddInProgressResource(curr)
	}
}

func keyOf(s *registry.Service) ConfigKey {
	return ServiceKey(s.Hostname, s.Attributes.Namespace)
}

// relevant reports whether proxies may see a difference.
func relevant(old, curr configstore.Config) bool {
	return !strings.HasSuffix(curr.GroupVersionKind.Group, "istio.io") ||
		hasIstioKey(old.Meta) || hasIstioKey(curr.Meta) ||
		!configstore.EqualMessage(old.Spec, curr.Spec)
}

// hasIstioKey reports whether labels or annotations may affect the meaning of the object.
func hasIstioKey(m configstore.Meta) bool {
	for _, pairs := range []map[string]string{m.Labels, m.Annotations} {
		for key := range pairs {
			if strings.Contains(key, "istio.io") {
				return true
			}
		}
	}
	return false
}
