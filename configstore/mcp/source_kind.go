// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/anypb"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/internal/commit"
	"github.com/pilotkit/pilotkit/internal/backoff"
)

// sourceKind is a source's state for one kind.
type sourceKind struct {
	schema  configstore.Schema
	typeURL string
	objects map[sourceName]*sourceObject
	// refused are the objects that the store does not take.
	refused map[sourceName]*sourceObject
	// judged are the objects of the last response that changed or have errors.
	judged []*sourceObject
	// changed are the objects whose errors may differ from the published ones.
	changed []*sourceObject
	// unnamed are the errors of resources whose names cannot be read: of the last
	// response, or, as a delta is not the whole, of all of the stream. Those from fresh on
	// are of the last response.
	unnamed []*Error
	fresh   int
	// publishedUnnamed are the published unnamed errors.
	publishedUnnamed []*Error
	// round counts the responses. usable is the number of valid objects in the last one.
	round  uint64
	usable int
	// unread is how many resources of the last response have no name that can be read, and overlooked how many bad
	// objects of it are not kept.
	unread, overlooked int
	// written is how many objects are in the store.
	written int
	// synced: the kind was answered on any stream.
	synced bool
	// version is that of the last response that was accepted.
	version string

	// The rest is about the open stream.

	// answered: a response was applied.
	answered bool
	// held is the response that is held back, or nil. It is applied at heldUntil.
	held      *response
	heldUntil time.Time
	// accepted is the version of the last response that was accepted.
	accepted string
	// replies are the pending replies, in the order of the responses. The last one is sent at
	// replyAt, those before it at once, because a server takes a reply to one response as a reply
	// to all earlier ones.
	replies []reply
	replyAt time.Time
	// refusal is the last NACK. refusals delays equal NACKs, because many servers immediately
	// resend a rejected response.
	refusal  reply
	refusals backoff.Backoff
}

// sourceName is the key of an object within its kind.
type sourceName struct{ namespace, name string }

// sourceObject is one object of the server.
type sourceObject struct {
	kind *sourceKind
	key  configstore.ConfigKey

	// resource is the last received resource of the object; equal bytes mean no change. Nil makes
	// the next resource be decoded in any case. version is its version in delta.
	resource *anypb.Any
	version  string
	// seen is the last round that contained the object. judged is the last round that added it to
	// the judged objects of the kind.
	seen, judged uint64
	// fresh: the first resource in that round was a new one. duplicate: there were two.
	fresh, duplicate bool
	// gone means that the server has removed the object.
	gone bool

	// good is the last good state, and nil if there was none, or if that is not one for
	// the store. goodVersion is its version.
	good        *configstore.Config
	goodVersion string
	checked     *configstore.Checked
	// err is why resource is not good.
	err *Error

	// owned is what this source has in the store as the object.
	owned commit.Owned
	// refused is why the store does not take good.
	refused *Error
	// published are err and refused as Report has them.
	published [2]*Error
}

func (o *sourceObject) name() sourceName { return sourceName{o.key.Namespace, o.key.Name} }

func newSourceKind(schema configstore.Schema, typeURL string) *sourceKind {
	return &sourceKind{
		schema: schema, typeURL: typeURL, objects: map[sourceName]*sourceObject{}, refused: map[sourceName]*sourceObject{},
		refusals: backoff.Backoff{Longest: maxRefusalWait},
	}
}

// maxUnnamed is how many errors of resources without a readable name are kept of one response, and
// of earlier deltas; maxNew is how many bad objects of a response are kept that have no good state.
// Others are counted.
const maxUnnamed, maxNew = 1000, 1000

// maxRefusalWait is the longest time, but for chance, that an equal NACK waits.
const maxRefusalWait = 30 * time.Second

// disconnect forgets the stream.
func (k *sourceKind) disconnect() {
	k.answered = false
	k.release()
	k.accepted, k.replies, k.refusal = "", nil, reply{}
	k.unnamed = nil
	k.refusals.Reset()
}

// known returns the versions of the objects that need not be sent again, by name. What
// is bad is not one of them in its bad state.
func (k *sourceKind) known() map[string]string {
	out := make(map[string]string, len(k.objects))
	for name, o := range k.objects {
		if !o.gone && (o.err == nil || o.good != nil && !configstore.IsPlaceholder(o.good)) {
			out[resourceName(name.name, name.namespace)] = o.goodVersion
		}
	}
	return out
}

// accept prepares the reply to a response.
func (k *sourceKind) accept(r *response, refusal string) {
	now := time.Now()
	if refusal == "" {
		k.accepted, k.version, k.refusal = r.version, r.version, reply{}
		k.refusals.Reset()
		k.replies, k.replyAt = append(k.replies, reply{typeURL: k.typeURL, version: r.version, nonce: r.nonce}), now
		return
	}
	again := k.refusal.refusal == refusal && k.refusal.version == r.version
	k.refusal = reply{version: r.version, refusal: refusal}
	k.replies, k.replyAt = append(k.replies, reply{typeURL: k.typeURL, version: k.accepted, nonce: r.nonce, refusal: refusal}), now
	if again {
		k.replyAt = now.Add(k.refusals.Next())
	}
}

// take updates the objects from a response, and returns the objects that may have to be written.
func (k *sourceKind) take(r *response, decode func(*sourceObject)) (dirty []*sourceObject) {
	k.round++
	k.judged = nil
	if !r.delta || len(k.unnamed) > maxUnnamed {
		k.unnamed = nil
	}
	k.fresh, k.unread = len(k.unnamed), 0
	for i := range r.resources {
		in := &r.resources[i]
		if in.resource.GetTypeUrl() == k.typeURL {
			in.resource.TypeUrl = resourceTypeURL // go-control-plane's caches put that of the response there
		}
		name, err := identify(in)
		if err != nil {
			if k.unread++; k.unread <= maxUnnamed {
				k.unnamed = append(k.unnamed, k.unnamedError(i+1, err))
			}
			continue
		}
		o := k.object(name)
		arrived := o.arrive(in, k.round)
		if arrived {
			dirty = append(dirty, o)
		}
		if (arrived || o.err != nil || o.refused != nil) && o.judged != k.round {
			o.judged = k.round
			k.judged = append(k.judged, o)
		}
	}
	if k.unread > maxUnnamed {
		k.unnamed = append(k.unnamed, k.unnamedError(len(r.resources), fmt.Errorf("%d more resources have no name that can be read", k.unread-maxUnnamed)))
	}
	dirty = k.decodeAll(dirty, decode, len(r.resources))
	k.usable = len(r.resources) - k.unread - k.overlooked
	for _, o := range k.judged {
		if o.err != nil {
			k.usable--
		}
	}
	return append(dirty, k.remove(r)...)
}

// decodeAll decodes objects, and returns the ones to keep. It keeps at most maxNew bad objects
// without a good state.
func (k *sourceKind) decodeAll(dirty []*sourceObject, decode func(*sourceObject), last int) []*sourceObject {
	bad := 0
	k.overlooked = 0
	kept := slices.DeleteFunc(dirty, func(o *sourceObject) bool {
		decode(o)
		if o.err != nil && o.good == nil && o.owned.Config == nil && o.published == [2]*Error{} {
			if bad++; bad > maxNew {
				delete(k.objects, o.name())
				k.overlooked++
				return true
			}
		}
		k.note(o)
		return false
	})
	if k.overlooked > 0 {
		k.judged = slices.DeleteFunc(k.judged, func(o *sourceObject) bool { return k.objects[o.name()] != o })
		k.unnamed = append(k.unnamed, k.unnamedError(last, fmt.Errorf("%d more resources are not objects, like those before them", k.overlooked)))
	}
	return kept
}

// unnamedError returns the error of a resource without a name that can be read.
func (k *sourceKind) unnamedError(resource int, err error) *Error {
	return &Error{TypeURL: k.typeURL, Resource: resource, Object: configstore.ConfigKey{Kind: k.schema.GroupVersionKind}, Err: err}
}

// identify returns the name of the object in a resource. The error is the reason why the name is
// unknown.
func identify(in *received) (name sourceName, err error) {
	var ok bool
	switch {
	case in.name != "":
		if name.name, name.namespace, ok = splitName(in.name); !ok {
			err = fieldErrorf("name", `must be "namespace/name", is %q`, in.name)
		}
	case in.resource.GetTypeUrl() != resourceTypeURL:
		err = fieldErrorf("resource", "must be a %s, is a %q", resourceTypeURL, in.resource.GetTypeUrl())
	default:
		if name.name, name.namespace, ok = peekName(in.resource); !ok {
			err = fieldErrorf("metadata.name", `must be "namespace/name", cannot be read`)
		}
	}
	return name, err
}

// object returns an object, which may be a new one.
func (k *sourceKind) object(name sourceName) *sourceObject {
	o := k.objects[name]
	if o == nil {
		o = &sourceObject{kind: k, key: configstore.ConfigKey{
			Kind: k.schema.GroupVersionKind, Name: name.name, Namespace: name.namespace,
		}}
		k.objects[name] = o
	}
	return o
}

// arrive notes a resource of the object, and reports whether the object is to be decoded, at most
// once in a round.
func (o *sourceObject) arrive(in *received, round uint64) bool {
	same := o.resource != nil && in.resource != nil && o.resource.GetTypeUrl() == in.resource.GetTypeUrl() &&
		bytes.Equal(o.resource.GetValue(), in.resource.GetValue())
	if o.seen == round {
		if same || o.duplicate {
			return false
		}
		o.duplicate = true
		return !o.fresh
	}
	o.seen, o.gone, o.fresh, o.duplicate, o.version = round, false, !same, false, in.version
	switch {
	case !same:
		o.resource = in.resource
	case o.err == nil:
		o.goodVersion = in.version
	}
	return !same
}

// decode decodes and validates the last resource of an object.
func (s *Source) decode(o *sourceObject) {
	o.err = nil
	if read, err := s.decodeObject(o); err != nil {
		kept := o.owned.Config != nil && !configstore.IsPlaceholder(o.owned.Config)
		o.err = &Error{TypeURL: o.kind.typeURL, Object: o.key, Kept: kept, Err: err}
		s.hold(o, read, err)
	}
}

// hold has a placeholder take the place of an object that has no good state, if its kind has them.
// read is what could be read of it.
func (s *Source) hold(o *sourceObject, read configstore.Config, err error) {
	if o.good != nil && !configstore.IsPlaceholder(o.good) || !inRevision(read.Labels, s.opts.Revision) {
		return
	}
	read.Name, read.Namespace, read.Domain, read.ResourceVersion = o.key.Name, o.key.Namespace, s.opts.Domain, ""
	if placeholder, ok := o.kind.schema.Placeholder(read, err); ok {
		o.good, o.checked, o.goodVersion = &placeholder, nil, ""
	}
}

// decodeObject returns what could be read if there is an error.
func (s *Source) decodeObject(o *sourceObject) (c configstore.Config, err error) {
	if o.duplicate {
		o.resource = nil
		return c, ErrDuplicate
	}
	c, err = decode(o.resource, &o.kind.schema)
	switch {
	case err != nil:
		return c, err
	case c.Name != o.key.Name || c.Namespace != o.key.Namespace:
		return c, fieldErrorf("metadata.name", "must be that of the resource, is %q", resourceName(c.Name, c.Namespace))
	case !inRevision(c.Labels, s.opts.Revision):
		o.good, o.checked, o.goodVersion = nil, nil, o.version
		return c, nil
	}
	c.ResourceVersion, c.Domain = "", s.opts.Domain // the version is that of another store
	c = commit.Dated(c)
	checked, _, err := s.schemas.Check(c)
	if err != nil {
		return c, err //nolint:wrapcheck // names the object and the field
	}
	o.good, o.checked, o.goodVersion = &c, checked, o.version
	return c, nil
}

// remove marks the removed objects, and returns those to delete.
func (k *sourceKind) remove(r *response) (dirty []*sourceObject) {
	drop := func(o *sourceObject) {
		if o.seen == k.round || o.gone {
			return
		}
		o.resource, o.good, o.checked, o.err, o.gone, o.duplicate = nil, nil, nil, nil, true, false
		k.note(o)
		dirty = append(dirty, o)
	}
	if r.delta {
		for _, removed := range r.removed {
			name, namespace, _ := splitName(removed)
			if o := k.objects[sourceName{namespace, name}]; o != nil {
				drop(o)
			}
		}
		return dirty
	}
	if k.unread > 0 {
		return nil // any that is missing may be one of them
	}
	for _, o := range k.objects {
		drop(o)
	}
	return dirty
}

// forget drops an object that is neither there nor in the store.
func (k *sourceKind) forget(o *sourceObject) {
	if o.gone && o.owned.Config == nil && o.refused == nil {
		delete(k.objects, o.name())
	}
}
