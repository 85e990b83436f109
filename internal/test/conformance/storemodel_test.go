// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	"github.com/pilotkit/pilotkit/configstore"
)

// storeModel is a config store in a few lines, with two sets of rules: the recorded ones, and ours,
// which differ by row 18 of DECISIONS.md. The first proves that the model is faithful, because it
// must reproduce the golden file; the second gives the expected results. The validity of objects is
// taken from the golden file, because both agree in it.
type storeModel struct {
	ours     bool
	objects  map[configstore.ConfigKey]modelObject
	versions int
	births   int
}

// modelObject is a stored object. Version is an identity, created a time in the form of the files,
// and born the position in the order of creation.
type modelObject struct {
	config  configstore.Config
	created string
	version string
	born    int
}

// modelResult is the result of an operation, and its notifications. Op is the actual operation if
// that depends on the object.
type modelResult struct {
	op      string
	outcome string
	version string
	event   string
	old     *modelObject
	curr    *modelObject
}

func newStoreModel(ours bool) *storeModel {
	return &storeModel{ours: ours, objects: map[configstore.ConfigKey]modelObject{}}
}

// modelWrite is one write. Version is the one that the caller gave, created the
// creation time that it gave, timeZero if none.
type modelWrite struct {
	op      string
	config  configstore.Config
	created string
	version string
	// refused is the recorded outcome if the object or its kind was refused.
	refused string
}

// apply creates a document's object or, if it exists, updates it. refused is the
// recorded outcome if it was refused.
func (m *storeModel) apply(doc document, refused string, created *creationClock) modelResult {
	stored, exists := m.objects[doc.config.Key()]
	w := modelWrite{op: opCreate, config: doc.config, refused: refused, created: created.next(doc, stored.created)}
	if exists {
		w.op = opUpdate
	}
	r := m.write(w)
	r.op = w.op
	return r
}

func (m *storeModel) write(w modelWrite) modelResult {
	// Ours looks at the status only, so that an invalid spec is no obstacle.
	if w.refused != "" && (!m.ours || w.op != opUpdateStatus || w.refused == outcomeUnknownType) {
		return modelResult{outcome: w.refused}
	}
	stored, exists := m.objects[w.config.Key()]
	switch {
	case w.op == opCreate && exists:
		return modelResult{outcome: outcomeExists}
	case w.op == opCreate:
		return m.create(w)
	case !exists:
		return modelResult{outcome: outcomeNotFound}
	case w.version != "" && w.version != stored.version:
		return modelResult{outcome: outcomeConflict}
	default:
		return m.update(stored, w)
	}
}

func (m *storeModel) create(w modelWrite) modelResult {
	version := m.nextVersion()
	if !m.ours && w.version != "" {
		version = w.version
	}
	created := w.created
	if created == timeZero {
		created = timeNow
	}
	m.births++
	return m.put(eventAdd, nil, modelObject{config: w.config, created: created, version: version, born: m.births})
}

func (m *storeModel) update(stored modelObject, w modelWrite) modelResult {
	if !m.ours {
		version := m.nextVersion()
		if given, ok := w.config.Annotations[versionAnnotation]; ok {
			version = given
			w.config.Annotations = maps.Clone(w.config.Annotations)
			delete(w.config.Annotations, versionAnnotation)
		}
		return m.put(eventUpdate, &stored, modelObject{config: w.config, created: w.created, version: version, born: stored.born})
	}
	next := modelObject{config: w.config, created: w.created}
	if w.op == opUpdateStatus {
		next = modelObject{config: stored.config, created: stored.created}
		next.config.Status = w.config.Status
	}
	if next.created == timeZero {
		next.created = stored.created
	}
	if next.created == stored.created && sameContent(next.config, stored.config) {
		return modelResult{outcome: outcomeOK, version: stored.version}
	}
	next.version, next.born = m.nextVersion(), stored.born
	return m.put(eventUpdate, &stored, next)
}

// versionAnnotation is the annotation that gives the recorded store a version.
const versionAnnotation = "ResourceVersion"

func (m *storeModel) put(event string, old *modelObject, o modelObject) modelResult {
	m.objects[o.config.Key()] = o
	return modelResult{outcome: outcomeOK, version: o.version, event: event, old: old, curr: &o}
}

// remove deletes an object. The recorded store ignores the version.
func (m *storeModel) remove(k configstore.ConfigKey, version string) modelResult {
	stored, exists := m.objects[k]
	switch {
	case !exists:
		return modelResult{outcome: outcomeNotFound}
	case m.ours && version != "" && version != stored.version:
		return modelResult{outcome: outcomeConflict}
	}
	delete(m.objects, k)
	return modelResult{outcome: outcomeOK, event: eventDelete, curr: &stored}
}

// list returns the objects of a kind in a namespace ("" for all), sorted.
func (m *storeModel) list(kind configstore.GroupVersionKind, namespace string) []modelObject {
	var out []modelObject
	for k, o := range m.objects {
		if k.Kind == kind && (namespace == "" || k.Namespace == namespace) {
			out = append(out, o)
		}
	}
	slices.SortFunc(out, func(a, b modelObject) int {
		return cmp.Or(cmp.Compare(a.config.Namespace, b.config.Namespace), cmp.Compare(a.config.Name, b.config.Name))
	})
	return out
}

func (m *storeModel) nextVersion() string {
	m.versions++
	return "#" + strconv.Itoa(m.versions)
}

// sameContent compares two objects of one key, as far as a registry can see them.
func sameContent(a, b configstore.Config) bool {
	return maps.Equal(a.Labels, b.Labels) && maps.Equal(a.Annotations, b.Annotations) &&
		configstore.EqualMessage(a.Spec, b.Spec) && configstore.EqualMessage(a.Status, b.Status)
}

// sameObjects reports whether a registry would see the same in both stores.
func (m *storeModel) sameObjects(n *storeModel) bool {
	return maps.EqualFunc(m.objects, n.objects, func(a, b modelObject) bool { return sameContent(a.config, b.config) })
}
