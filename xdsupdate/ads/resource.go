// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"
	"go.uber.org/atomic"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/pilotkit/pilotkit/internal/guard"
)

// resource is one state of an xDS resource. It is built and encoded once, when
// a client first needs it, and then shared by all views and streams.
type resource struct {
	typeURL string
	name    string
	// One of them makes the resource, or nil if there is none; both nil: none.
	build func() (proto.Message, error)
	bytes func() []byte
	// fallback is an earlier state of the resource, which takes its place if this
	// one cannot be built; nil: none.
	fallback *resource
	// standIn makes what takes the place of a resource that cannot be built and has no
	// earlier state; nil: nothing does.
	standIn func() proto.Message
	// reported is the error of the earlier state: it is not reported again.
	reported string
	// marker says that this stands for something else than a resource.
	marker marker

	once sync.Once
	// Written by once.
	// equal is the fallback if this turned out equal to it: clients that have it keep
	// it, and nobody may have this.
	equal *resource
	hash  uint64 // of value; 0: there is none
	value []byte // the message, encoded; in an Any if the type URL does not name its type
	err   error
	made  int64 // when, in nanoseconds since 1970
	// kept: it could not be made, and value is that of the fallback, or nil.
	kept bool

	// named has what references has found.
	named atomic.Pointer[references]
}

// marker distinguishes what stands for a resource in a snapshot.
type marker uint8

const (
	// present: a resource.
	present marker = iota
	// tombstone, in the snapshot of a selection: neither the load assignment nor
	// its cluster exists. In the snapshot of a client: it has an empty assignment,
	// or none.
	tombstone
	// unknown, in the snapshot of a client: it has to be answered about the
	// resource, whatever it has.
	unknown
	// absent, in the snapshot of a client: it was told that there is none, in a way of
	// its own: see tellsAbsent.
	absent
	// unavailable, of a lookup: what there is could not be found out, and whatever a
	// selection has stays.
	unavailable
)

// isUnavailable reports whether what there is could not be found out.
func (r *resource) isUnavailable() bool { return r != nil && r.marker == unavailable }

// isPresent reports whether it is there, and stands for nothing else.
func (r *resource) isPresent() bool { return r != nil && r.marker == present }

// exists encodes the resource, if that has not been done, and reports whether
// there is one.
func (r *resource) exists() bool {
	if r == nil {
		return false
	}
	r.once.Do(r.encode)
	return r.hash != 0
}

// make encodes the resource, which may be nil, if that has not been done, for a view. If
// it cannot be encoded it does not exist, or stays as it was, and the reason is noted once,
// with the view, however many share the resource.
func (r *resource) make(failed *failures, of *view) {
	if r == nil {
		return
	}
	r.once.Do(func() {
		if r.encode(); r.err != nil && r.err.Error() != r.reported {
			failed.add(of.wrap(r.err))
		}
	})
}

func (r *resource) encode() {
	value, err := r.content()
	fallback := r.fallback
	if err == nil {
		r.reported = ""
	} else {
		r.err = fmt.Errorf("%s %s: %w", r.typeURL, r.name, err)
		if value == nil && r.standIn != nil && !fallback.exists() {
			value = r.encodedStandIn()
		}
	}
	r.kept = err != nil && value == nil
	r.build, r.bytes, r.fallback, r.standIn = nil, nil, nil, nil // with all that they hold on to
	switch {
	case value != nil:
		// Hashes are versions: equal content has equal ones in every replica.
		r.hash, r.value, r.made = max(1, xxhash.Sum64(value)), value, time.Now().UnixNano()
	case err != nil && fallback.exists():
		r.hash, r.value, r.made = fallback.hash, fallback.value, fallback.made
	}
	if fallback.exists() && fallback.hash == r.hash {
		r.equal = cmp.Or(fallback.equal, fallback) // not a chain of all that were equal
	}
}

// content returns the encoded resource, or nil. A panic of what builds it is an
// error: it may be the host's code.
func (r *resource) content() (value []byte, err error) {
	defer func() {
		if p := guard.Recovered(recover()); p != nil {
			value, err = nil, p
		}
	}()
	if r.bytes != nil {
		return r.bytes(), nil
	}
	if r.build == nil {
		return nil, nil
	}
	m, err := r.build()
	if m == nil || !m.ProtoReflect().IsValid() {
		return nil, err
	}
	value, invalid := r.marshal(m)
	if invalid != nil {
		return nil, errors.Join(invalid, err)
	}
	return value, err
}

// marshal returns the value of the resource for a message.
func (r *resource) marshal(m proto.Message) ([]byte, error) {
	value, err := marshal(m)
	if err != nil || namesMessage(r.typeURL) {
		return value, err
	}
	return marshal(&anypb.Any{TypeUrl: typeURLOf(m), Value: value})
}

// message decodes the value, which is not nil.
func (r *resource) message() (proto.Message, error) {
	packed := &anypb.Any{TypeUrl: r.typeURL, Value: r.value}
	if !namesMessage(r.typeURL) {
		packed = &anypb.Any{}
		if err := proto.Unmarshal(r.value, packed); err != nil {
			return nil, err
		}
	}
	return packed.UnmarshalNew()
}

// marshal returns nil with an error, where protobuf returns what it has encoded before.
func marshal(m proto.Message) ([]byte, error) {
	value, err := proto.MarshalOptions{Deterministic: true}.MarshalAppend([]byte{}, m)
	if err != nil {
		return nil, err
	}
	return value, nil
}

// encodedStandIn returns the encoded stand-in; nil: there is none.
func (r *resource) encodedStandIn() (value []byte) {
	defer func() {
		if recover() != nil {
			value = nil
		}
	}()
	if m := r.standIn(); m != nil && m.ProtoReflect().IsValid() && checkType(r.typeURL, m) == nil {
		value, _ = r.marshal(m)
	}
	return value
}

// same reports whether a client that has s needs not be sent r.
func (r *resource) same(s *resource) bool {
	return r == s || r.hash == s.hash && r.marker == s.marker
}

func compareNames(a, b *resource) int { return strings.Compare(a.name, b.name) }

// version is the text of a hash, or of a sum of hashes.
func version(hash uint64) string { return strconv.FormatUint(hash, 16) }

func appendVersion(out []byte, hash uint64) []byte { return strconv.AppendUint(out, hash, 16) }

// parseVersion is the inverse of version; 0 for what version does not write.
func parseVersion(v []byte) uint64 {
	if len(v) > 16 {
		return 0
	}
	var hash uint64
	for _, digit := range v {
		switch {
		case '0' <= digit && digit <= '9':
			digit -= '0'
		case 'a' <= digit && digit <= 'f':
			digit -= 'a' - 10
		default:
			return 0
		}
		hash = hash<<4 | uint64(digit)
	}
	return hash
}

// encoded returns a marker, which is not built.
func encoded(typeURL, name string, m marker) *resource {
	r := &resource{typeURL: typeURL, name: name, marker: m}
	r.once.Do(func() {})
	return r
}
