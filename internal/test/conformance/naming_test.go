// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"slices"
	"strconv"
)

// naming gives resource versions names in order of first appearance: two histories agree about
// versions if and only if the names agree.
type naming struct {
	names    map[string]string
	versions map[string]string
}

// name returns the name of a version; "" has none.
func (n *naming) name(version string) string {
	if version == "" {
		return ""
	}
	if n.names == nil {
		n.names, n.versions = map[string]string{}, map[string]string{}
	}
	name, ok := n.names[version]
	if !ok {
		name = "@" + strconv.Itoa(len(n.names)+1)
		n.names[version], n.versions[name] = name, version
	}
	return name
}

func (n *naming) object(o *object) *object {
	if o == nil {
		return nil
	}
	out := *o
	out.ResourceVersion = n.name(o.ResourceVersion)
	return &out
}

// storeView is the observation of the store after a step.
type storeView struct {
	Results []result
	Events  []eventHandlerCall
}

// named returns results and events with names for versions and without the
// wording of errors.
func named(n *naming, results []result, events []eventHandlerCall) storeView {
	v := storeView{Results: slices.Clone(results), Events: slices.Clone(events)}
	for i := range v.Results {
		r := &v.Results[i]
		r.Messages = nil
		r.ResourceVersion = n.name(r.ResourceVersion)
		r.Item = n.object(r.Item)
		r.Items = slices.Clone(r.Items)
		for j := range r.Items {
			r.Items[j] = *n.object(&r.Items[j])
		}
	}
	for i := range v.Events {
		v.Events[i].Old, v.Events[i].New = n.object(v.Events[i].Old), n.object(v.Events[i].New)
	}
	return v
}
