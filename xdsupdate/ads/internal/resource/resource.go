// SPDX-License-Identifier: Apache-2.0

// Package resource has the resources of xDS, which are built and encoded once (State), and
// immutable sets of them (Snapshot): the resources that exist, or that a client has.
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
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/pilotkit/pilotkit/internal/guard"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/reference"
)

// State is one state of an xDS resource. It is built and encoded once, when a client first needs
// it, and then shared by all views and streams.
type State struct {
	TypeURL string
	Name    string
	// Build or Bytes makes the resource; a nil result, or two nil functions, mean that there is
	// none.
	Build func() (proto.Message, error)
	Bytes func() []byte
	// Fallback is an earlier state of the resource, which replaces this one if it cannot be built;
	// it may be nil.
	Fallback *State
	// StandIn builds a replacement for a resource that cannot be built and has no earlier state; it
	// may be nil.
	StandIn func() (proto.Message, error)
	// Reported is the error of the earlier state, which is not reported again.
	Reported string
	// Marker distinguishes a resource from entries that stand for something else.
	Marker Marker

	// once guards the build, which writes the following fields.
	once sync.Once
	// equal is the fallback if the state turned out to be equal to it: clients that have the
	// fallback keep it, and perhaps no client has this state.
	equal *State
	Hash  uint64 // of Value, or 0 if there is no resource
	Value []byte // the encoded message, in an Any if the type URL does not name its type
	Err   error
	Made  int64 // build time in nanoseconds since 1970
	// Kept means that the build failed, and Value is that of the fallback, or nil.
	Kept bool

	references *reference.Set // nil for none
}

// Name is the name of a resource of a type.
type Name struct{ TypeURL, Name string }

// Marker is the kind of an entry of a snapshot.
type Marker uint8

const (
	// Present is the marker of a resource.
	Present Marker = iota
	// Tombstone means, in the snapshot of a selection, that neither the load assignment nor its
	// cluster exists, and in the snapshot of a client, that it has an empty assignment, or none.
	Tombstone
	// Unknown means, in the snapshot of a client, that the client must get a response about the
	// resource in any case.
	Unknown
	// Absent means, in the snapshot of a client, that it was told in a special way that there is no
	// resource.
	Absent
	// Unavailable means, as the result of a lookup, that the lookup failed, so that the selection
	// keeps its state.
	Unavailable
)

// IsUnavailable reports whether the lookup failed.
func (r *State) IsUnavailable() bool { return r != nil && r.Marker == Unavailable }

// IsPresent reports whether the resource exists and is not a marker.
func (r *State) IsPresent() bool { return r != nil && r.Marker == Present }

// Exists encodes the resource, if necessary, and reports whether there is one.
func (r *State) Exists() bool {
	if r == nil {
		return false
	}
	r.once.Do(r.encode)
	return r.Hash != 0
}

// Make encodes the resource, which may be nil, if necessary. If encoding fails, the resource does
// not exist, or stays in its earlier state. The first caller gets the error, unless the same error
// was reported for the earlier state.
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
			r.Build = r.StandIn
			value, _ = r.content()
		}
	}
	r.Kept = err != nil && value == nil
	r.Build, r.Bytes, r.Fallback, r.StandIn = nil, nil, nil, nil // releases their references
	switch {
	case value != nil:
		// Hashes are versions: equal content has equal versions in every replica.
		r.Hash, r.Value, r.Made = max(1, xxhash.Sum64(value)), value, time.Now().UnixNano()
	case err != nil && fallback.Exists():
		r.Hash, r.Value, r.Made = fallback.Hash, fallback.Value, fallback.Made
	}
	if r.Value != nil {
		r.references = reference.Find(r.TypeURL, r.Name, r.Value)
	}
	if fallback.Exists() && fallback.Hash == r.Hash {
		r.equal = cmp.Or(fallback.equal, fallback) // no chain of equal states
	}
}

// content returns the encoded resource, or nil. A panic becomes an error, because the code may be
// the program's.
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
	value, invalid := Marshal(m)
	if invalid == nil && !NamesMessage(r.TypeURL) {
		value, invalid = Marshal(&anypb.Any{TypeUrl: TypeURLOf(m), Value: value})
	}
	if invalid != nil {
		return nil, errors.Join(invalid, err)
	}
	return value, err
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

// Marshal encodes a message. With an error it returns nil, while protobuf returns the bytes encoded
// before the error.
func Marshal(m proto.Message) ([]byte, error) {
	value, err := proto.MarshalOptions{Deterministic: true}.MarshalAppend([]byte{}, m)
	if err != nil {
		return nil, err
	}
	return value, nil
}

// Same reports whether a client that has s needs no update to r.
func (r *State) Same(s *State) bool {
	return r == s || r.Hash == s.Hash && r.Marker == s.Marker
}

// NameOf returns the name of a resource.
func NameOf(r *State) string { return r.Name }

// CompareNames compares resources by name.
func CompareNames(a, b *State) int { return strings.Compare(a.Name, b.Name) }

// Version is the text of a hash, or of a sum of hashes.
func Version(hash uint64) string { return strconv.FormatUint(hash, 16) }

// AppendVersion appends the version of a hash.
func AppendVersion(out []byte, hash uint64) []byte { return strconv.AppendUint(out, hash, 16) }

// ParseVersion is the inverse of Version; it returns 0 for a text that is no number.
func ParseVersion(v []byte) uint64 {
	hash, err := strconv.ParseUint(string(v), 16, 64)
	if err != nil {
		return 0
	}
	return hash
}

// SetMade marks a resource as built that has its hash, value or marker already.
func (r *State) SetMade() { r.once.Do(func() {}) }

// NewMarker returns a marker, which is not built.
func NewMarker(typeURL, name string, m Marker) *State {
	r := &State{TypeURL: typeURL, Name: name, Marker: m}
	r.SetMade()
	return r
}

// LastGood returns the newest valid state of a resource, or nil; of equal states it returns the
// oldest, which is the one that clients have. A lazy resource that was never built returns its
// fallback.
func (r *State) LastGood() *State {
	built := true
	r.once.Do(func() {
		// No client has asked for it, so it is not built here.
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

// Failure returns the last reported error of a resource, or "". It is called after LastGood.
func (r *State) Failure() string {
	if r.Err != nil {
		return r.Err.Error()
	}
	return r.Reported
}

// References returns the references of the resource, which may be nil.
func (r *State) References() *reference.Set {
	if r == nil || r.references == nil {
		return reference.None
	}
	return r.references
}

// Assignment returns the name of the load assignment of a cluster that takes its endpoints from one.
func (r *State) Assignment() string { return cmp.Or(r.References().Assignment, r.Name) }

// TypeURLOf returns the type URL of a message in xDS.
func TypeURLOf(message proto.Message) string {
	return typeURLPrefix + string(message.ProtoReflect().Descriptor().FullName())
}

// typeURLPrefix begins the type URLs that end with the full name of a message, as all type URLs of
// xDS do. Protocols on top of it, such as MCP, have others.
const typeURLPrefix = "type.googleapis.com/"

// NamesMessage reports whether a type URL names the type of its messages. If it does not, each
// message is sent with a type URL of its own.
func NamesMessage(typeURL string) bool { return strings.HasPrefix(typeURL, typeURLPrefix) }

var errOtherType = errors.New("the message is of another type")

var (
	// ErrNoMessage means that a message is nil.
	ErrNoMessage = errors.New("the message is nil")
	// ErrNoName means that the name or the type of a resource is empty.
	ErrNoName = errors.New("a resource without a name, or without a type")
)

// CheckName checks that the name of a resource is the name in the message, because SotW clients
// know only the latter.
func CheckName(name string, message proto.Message) error {
	inside := name
	switch m := message.(type) {
	case interface{ GetClusterName() string }:
		inside = m.GetClusterName()
	case interface{ GetName() string }:
		inside = m.GetName()
	}
	switch {
	case name == "":
		return ErrNoName
	case inside != name:
		return fmt.Errorf("the name in the message is %q", inside)
	}
	return nil
}

// Valid checks that a message of the program is valid by the rules of its API, and has the type of a type URL: clients
// decode it as that type, and would find other fields in the bytes of another type.
func Valid(typeURL string, m proto.Message) error {
	want, ok := strings.CutPrefix(typeURL, typeURLPrefix)
	if is := m.ProtoReflect().Descriptor().FullName(); ok && string(is) != want {
		return fmt.Errorf("%w: it is a %s, and the type URL is that of a %s", errOtherType, is, want)
	}
	return Validate(m)
}

// Validate checks a message of the program by the rules of its API.
func Validate(m proto.Message) error {
	if v, ok := m.(interface{ ValidateAll() error }); ok {
		return v.ValidateAll()
	}
	return nil
}
