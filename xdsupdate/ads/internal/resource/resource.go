// SPDX-License-Identifier: Apache-2.0

// Package resource has xDS resources as clients are sent them, made and encoded once, and
// immutable sets of them: snapshots, which say what there is and what a client has.
package resource

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
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/reference"
)

// State is one state of an xDS resource. It is built and encoded once, when
// a client first needs it, and then shared by all views and streams.
type State struct {
	TypeURL string
	Name    string
	// One of them makes the resource, or nil if there is none; both nil: none.
	Build func() (proto.Message, error)
	Bytes func() []byte
	// Fallback is an earlier state of the resource, which takes its place if this
	// one cannot be built; nil: none.
	Fallback *State
	// StandIn makes what takes the place of a resource that cannot be built and has no
	// earlier state; nil: nothing does.
	StandIn func() proto.Message
	// Reported is the error of the earlier state: it is not reported again.
	Reported string
	// Marker says that this stands for something else than a resource.
	Marker Marker

	// once guards that it is made, and what follows is written then.
	once sync.Once
	// equal is the fallback if this turned out equal to it: clients that have it keep
	// it, and nobody may have this.
	equal *State
	Hash  uint64 // of Value; 0: there is none
	Value []byte // the message, encoded; in an Any if the type URL does not name its type
	Err   error
	Made  int64 // when, in nanoseconds since 1970
	// Kept: it could not be made, and Value is that of the fallback, or nil.
	Kept bool

	// named has what References has found.
	named atomic.Pointer[reference.Set]
}

// Name is the name of a resource of a type.
type Name struct{ TypeURL, Name string }

// Marker distinguishes what stands for a resource in a snapshot.
type Marker uint8

const (
	// Present is the marker of a resource.
	Present Marker = iota
	// Tombstone says, in the snapshot of a selection, that neither the load assignment nor
	// its cluster exists, and in the snapshot of a client, that it has an empty assignment,
	// or none.
	Tombstone
	// Unknown says, in the snapshot of a client, that it has to be answered about the
	// resource, whatever it has.
	Unknown
	// Absent says, in the snapshot of a client, that it was told that there is none, in a way of
	// its own.
	Absent
	// Unavailable says, of a lookup, that what there is could not be found out, and whatever a
	// selection has stays.
	Unavailable
)

// IsUnavailable reports whether what there is could not be found out.
func (r *State) IsUnavailable() bool { return r != nil && r.Marker == Unavailable }

// IsPresent reports whether it is there, and stands for nothing else.
func (r *State) IsPresent() bool { return r != nil && r.Marker == Present }

// Exists encodes the resource, if that has not been done, and reports whether
// there is one.
func (r *State) Exists() bool {
	if r == nil {
		return false
	}
	r.once.Do(r.encode)
	return r.Hash != 0
}

// Make encodes the resource, which may be nil, if that has not been done. If it cannot be
// encoded it does not exist, or stays as it was, and whoever was first is told the reason,
// unless that was reported of the earlier state.
func (r *State) Make() (failed error) {
	if r == nil {
		return nil
	}
	r.once.Do(func() {
		if r.encode(); r.Err != nil && r.Err.Error() != r.Reported {
			failed = r.Err
		}
	})
	return failed
}

func (r *State) encode() {
	value, err := r.content()
	fallback := r.Fallback
	if err == nil {
		r.Reported = ""
	} else {
		r.Err = fmt.Errorf("%s %s: %w", r.TypeURL, r.Name, err)
		if value == nil && r.StandIn != nil && !fallback.Exists() {
			value = r.encodedStandIn()
		}
	}
	r.Kept = err != nil && value == nil
	r.Build, r.Bytes, r.Fallback, r.StandIn = nil, nil, nil, nil // with all that they hold on to
	switch {
	case value != nil:
		// Hashes are versions: equal content has equal ones in every replica.
		r.Hash, r.Value, r.Made = max(1, xxhash.Sum64(value)), value, time.Now().UnixNano()
	case err != nil && fallback.Exists():
		r.Hash, r.Value, r.Made = fallback.Hash, fallback.Value, fallback.Made
	}
	if fallback.Exists() && fallback.Hash == r.Hash {
		r.equal = cmp.Or(fallback.equal, fallback) // not a chain of all that were equal
	}
}

// content returns the encoded resource, or nil. A panic of what builds it is an
// error: it may be the program's code.
func (r *State) content() (value []byte, err error) {
	defer func() {
		if p := guard.Recovered(recover()); p != nil {
			value, err = nil, p
		}
	}()
	if r.Bytes != nil {
		return r.Bytes(), nil
	}
	if r.Build == nil {
		return nil, nil
	}
	m, err := r.Build()
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
func (r *State) marshal(m proto.Message) ([]byte, error) {
	value, err := Marshal(m)
	if err != nil || NamesMessage(r.TypeURL) {
		return value, err
	}
	return Marshal(&anypb.Any{TypeUrl: TypeURLOf(m), Value: value})
}

// Message decodes the value, which is not nil.
func (r *State) Message() (proto.Message, error) {
	packed := &anypb.Any{TypeUrl: r.TypeURL, Value: r.Value}
	if !NamesMessage(r.TypeURL) {
		packed = &anypb.Any{}
		if err := proto.Unmarshal(r.Value, packed); err != nil {
			return nil, err
		}
	}
	return packed.UnmarshalNew()
}

// Marshal returns nil with an error, where protobuf returns what it has encoded before.
func Marshal(m proto.Message) ([]byte, error) {
	value, err := proto.MarshalOptions{Deterministic: true}.MarshalAppend([]byte{}, m)
	if err != nil {
		return nil, err
	}
	return value, nil
}

// encodedStandIn returns the encoded stand-in; nil: there is none.
func (r *State) encodedStandIn() (value []byte) {
	defer func() {
		if guard.Recovered(recover()) != nil {
			value = nil
		}
	}()
	if m := r.StandIn(); m != nil && m.ProtoReflect().IsValid() && checkType(r.TypeURL, m) == nil {
		value, _ = r.marshal(m)
	}
	return value
}

// Same reports whether a client that has s needs not be sent r.
func (r *State) Same(s *State) bool {
	return r == s || r.Hash == s.Hash && r.Marker == s.Marker
}

// CompareNames compares resources by name.
func CompareNames(a, b *State) int { return strings.Compare(a.Name, b.Name) }

// Version is the text of a hash, or of a sum of hashes.
func Version(hash uint64) string { return strconv.FormatUint(hash, 16) }

// AppendVersion appends the version of a hash.
func AppendVersion(out []byte, hash uint64) []byte { return strconv.AppendUint(out, hash, 16) }

// ParseVersion is the inverse of version; 0 for what version does not write.
func ParseVersion(v []byte) uint64 {
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

// SetMade says that the resource has a hash, a value or a marker already: it is not built.
func (r *State) SetMade() { r.once.Do(func() {}) }

// NewMarker returns a marker, which is not built.
func NewMarker(typeURL, name string, m Marker) *State {
	r := &State{TypeURL: typeURL, Name: name, Marker: m}
	r.SetMade()
	return r
}

// LastGood returns the newest state of a resource that is known to be good, or
// nil; of equal ones the oldest, which is the one that clients have. A lazy resource
// that was never built hands on what it would fall back to.
func (r *State) LastGood() *State {
	built := true
	r.once.Do(func() {
		// No client has asked for it, so none has it: it is not built for this.
		built = false
	})
	switch {
	case !built:
		return r.Fallback
	case r.equal != nil:
		return r.equal
	default:
		return r
	}
}

// Failure returns the error that was last reported of a resource; "" for none. It is
// called after LastGood.
func (r *State) Failure() string {
	if r.Err != nil {
		return r.Err.Error()
	}
	return r.Reported
}

// References returns what the resource, which may be nil, names. It is found in the
// encoded resource, once, when somebody asks for it: most resources are never asked.
func (r *State) References() *reference.Set {
	if r == nil || !reference.HasClusters(r.TypeURL) {
		return reference.None
	}
	if known := r.named.Load(); known != nil {
		return known
	}
	found := reference.Find(r.TypeURL, r.Value)
	r.named.Store(found)
	return found
}
