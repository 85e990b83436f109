// SPDX-License-Identifier: Apache-2.0

package serviceentry

import "github.com/pilotkit/pilotkit/registry"

// interner keeps one copy of equal labels, and one of equal endpoint attributes,
// and counts their users. What has no user is evicted, so that the tables never hold
// more than the registry does; a reader that was given a copy before may keep it.
//
// It saves memory, as most workloads of an app are alike in everything but the
// address: the 381 B of a workload include no map of labels. It also saves time: what
// is interned is compared by pointer, so that workloads with the same labels form
// a group without comparing them, and an unchanged workload is found unchanged.
//
// Copies are looked up by the text of a draft, which is written on the stack: labels
// and attributes are built only if there is no copy yet. Workloads use attributes
// directly; the contributions of entries share what their workload uses, and those that are
// written in an entry are one user each.
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

// acquire returns the copy of what is drafted, and counts one more user. Nothing
// is built that there is already.
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
