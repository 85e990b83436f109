// SPDX-License-Identifier: Apache-2.0

package serviceentry

import "github.com/pilotkit/pilotkit/registry"

// interner keeps one copy of equal labels and one of equal endpoint attributes, and counts their
// users. It evicts copies without users, so the tables never hold more than the registry does.
// Readers may keep a copy after its eviction.
//
// It saves memory, because most workloads of an app differ only in the address: the 381 B of a
// workload include no map of labels. It also saves time, because interned values are compared by
// pointer: workloads are grouped by labels without a comparison of maps, and an unchanged workload
// is detected cheaply.
//
// Copies are looked up by the text of a draft, which is written on the stack: labels and attributes
// are built only if there is no copy yet. Workloads use attributes directly. Contributions of
// selected workloads share the attributes of the workload, and each inline contribution is one
// user.
type interner struct {
	labels     map[string]*sharedLabels
	attributes map[attributesKey]*interned
}

// attributesKey names attributes: their labels, and the text of the rest.
type attributesKey struct {
	labels *sharedLabels
	text   string
}

// sharedLabels is one copy of labels. Two of one interner are equal only if they
// are the same.
type sharedLabels struct {
	labels registry.Labels
	text   string
	users  int
}

// interned is one copy of attributes. Two of one interner are equal only if they
// are the same.
type interned struct {
	registry.EndpointAttributes
	attributesKey
	users int
}

func newInterner() *interner {
	return &interner{labels: map[string]*sharedLabels{}, attributes: map[attributesKey]*interned{}}
}

// acquire returns the copy for a draft and adds a user. It builds the copy only if there is none.
func (n *interner) acquire(d *draft) *interned {
	var room [512]byte
	text := d.appendLabels(room[:0])
	labels := n.labels[string(text)]
	if labels == nil {
		labels = &sharedLabels{labels: d.buildLabels(), text: string(text)}
		n.labels[labels.text] = labels
	}
	text = d.appendRest(text[:0])
	e := n.attributes[attributesKey{labels, string(text)}]
	if e == nil {
		e = &interned{EndpointAttributes: d.build(labels.labels), attributesKey: attributesKey{labels, string(text)}}
		n.attributes[e.attributesKey] = e
		labels.users++
	}
	e.users++
	return e
}

// again counts one more user of a copy.
func (e *interned) again() *interned {
	e.users++
	return e
}

// release ends one use of what acquire returned; nil is nothing. The last one evicts
// the copy, and its labels with it if no other copy has them.
func (n *interner) release(e *interned) {
	if e == nil {
		return
	}
	if e.users--; e.users > 0 {
		return
	}
	delete(n.attributes, e.attributesKey)
	if e.labels.users--; e.labels.users == 0 {
		delete(n.labels, e.labels.text)
	}
}
