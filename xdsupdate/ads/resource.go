// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"fmt"
	"strconv"
	"sync"

	"github.com/cespare/xxhash/v2"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// resource is one state of an xDS resource. It is built and encoded once, when
// somebody first needs it, and then shared by all streams.
type resource struct {
	typeURL string
	name    string
	// One of them makes the resource, or nil if there is none; both nil: none.
	build func() proto.Message
	bytes func() []byte

	once sync.Once
	// Written by once.
	hash  uint64 // of the encoding; 0: there is none
	any   *anypb.Any
	delta *discovery.Resource
	err   error
}

// exists encodes the resource, if that has not been done, and reports whether
// there is one.
func (r *resource) exists() bool {
	if r == nil {
		return false
	}
	r.once.Do(r.encode)
	return r.hash != 0
}

// encodeAll encodes resources. What cannot be encoded does not exist; report is
// told of it once.
func encodeAll(resources []*resource, report func(error)) {
	for _, r := range resources {
		if r == nil {
			continue
		}
		r.once.Do(func() {
			if r.encode(); r.err != nil {
				report(r.err)
			}
		})
	}
}

func (r *resource) encode() {
	value := r.content()
	r.build, r.bytes = nil, nil // with all that they hold on to
	if value == nil {
		return
	}
	// Hashes are versions: equal content has equal ones in every replica.
	r.hash = max(1, xxhash.Sum64(value))
	r.any = &anypb.Any{TypeUrl: r.typeURL, Value: value}
	r.delta = &discovery.Resource{Name: r.name, Version: version(r.hash), Resource: r.any}
}

// content returns the encoded resource, or nil.
func (r *resource) content() []byte {
	if r.bytes != nil {
		return r.bytes()
	}
	if r.build == nil {
		return nil
	}
	m := r.build()
	if m == nil || !m.ProtoReflect().IsValid() {
		return nil
	}
	value, err := proto.MarshalOptions{Deterministic: true}.MarshalAppend([]byte{}, m)
	if err != nil {
		r.err = fmt.Errorf("encode %s %s: %w", r.typeURL, r.name, err)
		return nil
	}
	return value
}

// same reports whether a client that has s needs not be sent r.
func (r *resource) same(s *resource) bool {
	return r == s || s != nil && r.exists() && s.exists() && r.hash == s.hash
}

// version is the text of a hash, or of a sum of hashes.
func version(hash uint64) string { return strconv.FormatUint(hash, 16) }

// forgotten stands for a resource that a client knows, in a state that has to be
// replaced whatever it is.
func forgotten(typeURL, name string) *resource { return &resource{typeURL: typeURL, name: name} }

// remembered stands for a resource that a client brought from another stream.
func remembered(typeURL, name, v string) *resource {
	r := forgotten(typeURL, name)
	if hash, err := strconv.ParseUint(v, 16, 64); err == nil {
		r.once.Do(func() { r.hash = hash })
	}
	return r
}
