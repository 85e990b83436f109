// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"strings"

	"github.com/pilotkit/pilotkit/configstore"
)

// symbols are the versions of a store by their names in the golden file, which come from the
// recorded store. The histories of the two stores may differ (row 18), so a name stands for the
// version that the object has in our store when the name first appears.
type symbols map[string]string

// resolve returns the version for a name in a scenario. An unknown name is an invented version,
// which must not equal one of ours by chance.
func (s symbols) resolve(given string) string {
	if version, ok := s[given]; ok || given == "" {
		return version
	}
	return "made up: " + given
}

// bindResult learns the names that a recorded result shows. current returns the
// version of an object, "" if it does not exist.
func (s symbols) bindResult(rec result, current func(configstore.ConfigKey) string) {
	if parts := strings.SplitN(rec.Object, "/", 3); len(parts) == 3 {
		s.bind(rec.ResourceVersion, objectRef{Kind: parts[0], Namespace: parts[1], Name: parts[2]}, current)
	}
	if rec.Item != nil {
		s.bind(rec.Item.ResourceVersion, rec.Item.ref(), current)
	}
	for _, o := range rec.Items {
		s.bind(o.ResourceVersion, o.ref(), current)
	}
}

// bindEvents is bindResult for the names that only handlers were notified of.
func (s symbols) bindEvents(events []eventHandlerCall, current func(configstore.ConfigKey) string) {
	for _, c := range events {
		if c.New != nil && c.Event != eventDelete {
			s.bind(c.New.ResourceVersion, c.New.ref(), current)
		}
	}
}

func (s symbols) bind(name string, ref objectRef, current func(configstore.ConfigKey) string) {
	if _, known := s[name]; known || !strings.HasPrefix(name, "@") {
		return
	}
	if version := current(ref.key()); version != "" {
		s[name] = version
	}
}

func (r objectRef) key() configstore.ConfigKey {
	return configstore.ConfigKey{Kind: kindOf(r.Kind), Namespace: r.Namespace, Name: r.Name}
}

func (o object) ref() objectRef { return objectRef{Kind: o.Kind, Namespace: o.Namespace, Name: o.Name} }
