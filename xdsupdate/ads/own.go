// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"fmt"
	"iter"
	"maps"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/pmap"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/resource"
)

// SetResource sets a resource of the program, of any type, for all proxies. The type URL is that of
// the message. It replaces a resource of a provider, including those of services, and a wildcard
// subscription to its type covers it. Only clients that are subscribed to the name cost anything.
//
// Clients subscribe to the name, which has to be the name in the message, if the message has one.
// The message is encoded at once and not kept. If it is invalid (ValidateAll) or cannot be encoded,
// the former state stays, and the error is returned.
//
// Changes are sent like changes of endpoints (xdsupdate.Debounce). Changes that belong
// together, such as a cluster and a route to it, are made in UpdateResources.
func (s *Server) SetResource(name string, message proto.Message) (err error) {
	s.UpdateResources(func(w ResourceWriter) { err = w.SetResource(name, message) })
	return err
}

// DeleteResource deletes the resource that SetResource has set under a name; the resource of a
// provider becomes visible again, if there is one. Other names may be deleted without effect.
func (s *Server) DeleteResource(typeURL, name string) {
	s.UpdateResources(func(w ResourceWriter) { w.DeleteResource(typeURL, name) })
}

// ResourceWriter sets and deletes resources of the program, like the methods of a Server.
type ResourceWriter interface {
	SetResource(name string, message proto.Message) error
	DeleteResource(typeURL, name string)
}

// UpdateResources calls change once, with a writer. The changes become visible together when change
// has returned: no push has only some of them.
func (s *Server) UpdateResources(change func(ResourceWriter)) {
	w := ownChanges{}
	change(w)
	if len(w) == 0 {
		return
	}
	keys := make(map[configstore.ConfigKey]struct{}, len(w))
	for name := range w {
		keys[configstore.ConfigKey{Kind: configstore.GroupVersionKind{Kind: name.TypeURL}, Name: name.Name}] = struct{}{}
	}
	s.own.set(w)
	s.ConfigUpdate(&xdsupdate.PushRequest{ConfigsUpdated: keys, Reason: map[xdsupdate.TriggerReason]int{xdsupdate.ReasonConfig: 1}})
}

// ownChanges are resources to set, or nil to delete them.
type ownChanges map[resource.Name]*ResourceState

// SetResource implements ResourceWriter.
func (w ownChanges) SetResource(name string, message proto.Message) error {
	state, err := NewResourceState(name, message)
	if err != nil {
		return fmt.Errorf("set resource: %w", err)
	}
	w[resource.Name{TypeURL: state.resource.TypeURL, Name: name}] = state
	return nil
}

// DeleteResource implements ResourceWriter.
func (w ownChanges) DeleteResource(typeURL, name string) {
	w[resource.Name{TypeURL: typeURL, Name: name}] = nil
}

// resourcesByType are the resources of the program, by type URL and name. It is immutable.
type resourcesByType map[string]pmap.Map[string, *ResourceState]

// provide returns the resources that were captured for the push.
func (o *ownResources) provide(push *PushContext) (Provided, Changes) {
	before, now := o.provided, push.moment.own
	o.provided = now
	return now, Changes{Names: now.changedSince(before)}
}

// Names implements Provided.
func (r resourcesByType) Names(_ View, typeURL string) (iter.Seq[string], bool) {
	return func(yield func(string) bool) {
		r[typeURL].All()(func(name string, _ *ResourceState) bool { return yield(name) })
	}, false
}

// Covers implements Provided.
func (r resourcesByType) Covers(_ View, typeURL, name string) (covered, only bool) {
	_, covered = r[typeURL].Get(name)
	return covered, false
}

// Lookup implements Provided.
func (r resourcesByType) Lookup(_ View, typeURL, name string) Answer {
	state, ok := r[typeURL].Get(name)
	return Answer{State: state, Next: !ok}
}

// changedSince returns the names whose resources differ from an older state.
func (r resourcesByType) changedSince(old resourcesByType) (out []ChangedName) {
	for typeURL, now := range r {
		pmap.Changes(old[typeURL], now, func(before, after *pmap.Entry[string, *ResourceState]) bool {
			if after == nil {
				after = before
			}
			out = append(out, ChangedName{TypeURL: typeURL, Name: after.Key})
			return true
		})
	}
	return out
}

// ownResources are the program's resources. They are the first provider.
type ownResources struct {
	provided resourcesByType // in the last push

	mu  sync.Mutex
	now resourcesByType
}

// set makes several changes in one step.
func (o *ownResources) set(changes ownChanges) {
	o.mu.Lock()
	defer o.mu.Unlock()
	next := make(resourcesByType, len(o.now)+1)
	maps.Copy(next, o.now)
	for name, r := range changes {
		if list := next[name.TypeURL]; r == nil {
			next[name.TypeURL] = list.Delete(name.Name) // an empty list stays: changedSince looks at all types
		} else {
			next[name.TypeURL] = list.Set(name.Name, r)
		}
	}
	o.now = next
}

// capture returns the present resources.
func (o *ownResources) capture() resourcesByType {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.now
}
