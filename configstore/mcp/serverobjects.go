// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"iter"
	"maps"
	"strconv"

	"github.com/cespare/xxhash/v2"
	"google.golang.org/protobuf/proto"
	mcp "istio.io/api/mcp/v1alpha1"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/pmap"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
)

// served is an immutable snapshot of the served objects.
type served struct {
	types map[string]configstore.GroupVersionKind
	// kinds has the objects of a kind by the names under which they travel.
	kinds map[configstore.GroupVersionKind]pmap.Map[string, *configstore.Config]
}

var _ ads.Lister = (*served)(nil)

// with returns the snapshot after changes. A nil object is a deletion.
func (s *served) with(changed map[configstore.ConfigKey]*configstore.Config) *served {
	lists := make(map[configstore.GroupVersionKind]*pmap.Live[string, *configstore.Config])
	for key, c := range changed {
		list := lists[key.Kind]
		if list == nil {
			list = s.kinds[key.Kind].Live()
			lists[key.Kind] = list
		}
		if name := resourceName(key.Name, key.Namespace); c == nil {
			list.Delete(name)
		} else {
			list.Set(name, c)
		}
	}
	out := &served{types: s.types, kinds: maps.Clone(s.kinds)}
	if out.kinds == nil {
		out.kinds = make(map[configstore.GroupVersionKind]pmap.Map[string, *configstore.Config], len(lists))
	}
	for kind, list := range lists {
		out.kinds[kind] = list.Snapshot()
	}
	return out
}

// List implements ads.Lister: a client gets the objects of its revision, of the kind of the type
// URL, and no resources of other providers.
func (s *served) List(view ads.View, typeURL string) (resources iter.Seq2[string, ads.Answer], only bool) {
	to, ok := view.Policy.(clientPolicy)
	if !ok {
		return nil, false
	}
	return func(yield func(string, ads.Answer) bool) {
		for name, c := range s.kinds[s.types[typeURL]].All() {
			if inRevision(c.Labels, to.revision) && !yield(name, answer(c)) {
				return
			}
		}
	}, s.has(typeURL)
}

// Names implements ads.Provided.
func (s *served) Names(view ads.View, typeURL string) (names iter.Seq[string], only bool) {
	list, only := s.List(view, typeURL)
	if list == nil {
		return nil, only
	}
	return func(yield func(string) bool) {
		for name := range list {
			if !yield(name) {
				return
			}
		}
	}, only
}

// Covers implements ads.Provided.
func (s *served) Covers(view ads.View, typeURL, name string) (covered, only bool) {
	to, ok := view.Policy.(clientPolicy)
	if !ok {
		return false, false
	}
	c, found := s.kinds[s.types[typeURL]].Get(name)
	return found && inRevision(c.Labels, to.revision), s.has(typeURL)
}

// Lookup implements ads.Provided.
func (s *served) Lookup(view ads.View, typeURL, name string) ads.Answer {
	to, ok := view.Policy.(clientPolicy)
	if !ok || !s.has(typeURL) {
		return ads.Answer{Next: true}
	}
	if c, found := s.kinds[s.types[typeURL]].Get(name); found && inRevision(c.Labels, to.revision) {
		return answer(c)
	}
	return ads.Answer{}
}

// has reports whether a type URL names a kind.
func (s *served) has(typeURL string) bool {
	_, ok := s.types[typeURL]
	return ok
}

// answer returns the builder of an object's resource, which all clients share.
func answer(c *configstore.Config) ads.Answer {
	return ads.Answer{Build: func() (proto.Message, error) {
		resource, err := resourceOf(c)
		if err != nil {
			return nil, err
		}
		return resource, nil
	}}
}

// resourceOf returns an object as a resource. Its version is a hash of all other fields, so that
// replicas with other stores agree on it.
func resourceOf(c *configstore.Config) (*mcp.Resource, error) {
	resource, err := toResource(c)
	if err != nil {
		return nil, err
	}
	resource.Metadata.Version = ""
	content, err := (proto.MarshalOptions{Deterministic: true}).Marshal(resource)
	if err != nil {
		return nil, fieldErrorf("metadata", "%v", err) // because a string is not UTF-8
	}
	resource.Metadata.Version = strconv.FormatUint(xxhash.Sum64(content), 16)
	return resource, nil
}
