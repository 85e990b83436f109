// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"
	"iter"
	"strings"
	"unicode/utf8"

	"github.com/cespare/xxhash/v2"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/runtime/protoiface"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/pilotkit/pilotkit/internal/excerpt"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/reference"
)

// MaxRefusal is the number of bytes of the text of a NACK that are kept, logged and shown, because
// the client chooses its length.
const MaxRefusal = 4096

// Request is a DiscoveryRequest or a DeltaDiscoveryRequest. It receives the encoded message: to
// gRPC's codec it is a protobuf message that decodes itself. An ACK of a SotW client has all
// subscribed names. Their hash is compared with that of the previous request, and they are only
// kept if they differ. Names become strings only when the request is handled, if they count.
type Request struct {
	protoreflect.Message // an empty one, for reflection
	methods              *protoiface.Methods
	limit, nodeLimit     int // see NewRequest
	// known has the names of the last SotW request of each type. The receiving goroutine owns it.
	known map[string]nameHash

	// Delta means that it is a DeltaDiscoveryRequest. Bytes is its size.
	Delta bool
	Bytes int
	// NodeBytes is the size of the node.
	NodeBytes int
	// Node, TypeURL and Nonce are the fields of the message; nil or "" if they are not set.
	Node           *core.Node
	TypeURL, Nonce string
	// Refused means that it has an error_detail; Text is the beginning of its message.
	Refused bool
	Text    string

	// Version and Names are fields of SotW. Same means that the names of the previous request
	// are repeated, and Names is empty.
	Version string
	Names   NameList
	Same    bool
	hash    nameHash

	// Subscribe, Unsubscribe and InitialVersions are fields of delta.
	Subscribe, Unsubscribe NameList
	InitialVersions        InitialVersions
}

// nameHash identifies the names of a request.
type nameHash struct {
	hash  uint64
	bytes int
}

var errRequest = errors.New("not a discovery request")

// NewRequest returns a request of SotW or of delta, which is used for all requests of one stream,
// one after the other. If a message has more than limit bytes, or a node more than nodeLimit, only
// its size is recorded; 0 means no limit.
func NewRequest(delta bool, limit, nodeLimit int) *Request {
	r := &Request{Message: (&emptypb.Empty{}).ProtoReflect(), Delta: delta, limit: limit, nodeLimit: nodeLimit, known: make(map[string]nameHash)}
	r.methods = &protoiface.Methods{Unmarshal: func(in protoiface.UnmarshalInput) (protoiface.UnmarshalOutput, error) {
		return protoiface.UnmarshalOutput{Flags: protoiface.UnmarshalInitialized}, r.Decode(in.Buf)
	}}
	return r
}

// Reset is called before a message is decoded.
func (r *Request) Reset() {
	*r = Request{Message: r.Message, methods: r.methods, Delta: r.Delta, limit: r.limit, nodeLimit: r.nodeLimit, known: r.known}
}

// ProtoReflect implements proto.Message.
func (r *Request) ProtoReflect() protoreflect.Message { return r }

// Interface implements protoreflect.Message.
func (r *Request) Interface() protoreflect.ProtoMessage { return r }

// ProtoMethods implements protoreflect.Message.
func (r *Request) ProtoMethods() *protoiface.Methods { return r.methods }

// Decode decodes a message. It keeps no reference to data.
func (r *Request) Decode(data []byte) error {
	if r.Bytes = len(data); r.limit > 0 && r.Bytes > r.limit {
		return nil // its size is rejected later
	}
	var names [][]byte
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return errRequest
		}
		if kind != protowire.BytesType {
			if n = protowire.ConsumeFieldValue(number, kind, data[n:]) + n; n < 1 {
				return errRequest
			}
			data = data[min(n, len(data)):]
			continue
		}
		if list := r.list(number); list != nil {
			if n != 1 {
				return errRequest // a tag that is not in the shortest encoding
			}
			size, ok := r.knownNames(data)
			if !ok {
				size, ok = sameFields(data)
			}
			if !ok {
				return errRequest
			}
			if !r.Delta {
				names = append(names, data[:size])
			} else if err := list.add(data[:size]); err != nil {
				return err
			}
			data = data[size:]
			continue
		}
		value, m := protowire.ConsumeBytes(data[n:])
		if m < 0 {
			return errRequest
		}
		data = data[n+m:]
		if err := r.field(number, value); err != nil {
			return err
		}
	}
	if r.Delta {
		r.InitialVersions.typeURL = r.TypeURL
		return nil
	}
	return r.takeNames(names)
}

// list returns the list of a field that may occur many times, or nil.
func (r *Request) list(number protowire.Number) interface{ add(fields []byte) error } {
	const names, unsubscribe, have = 3, 4, 5
	switch {
	case number == names && !r.Delta:
		return &r.Names
	case number == names:
		return &r.Subscribe
	case number == unsubscribe && r.Delta:
		return &r.Unsubscribe
	case number == have && r.Delta:
		return &r.InitialVersions
	}
	return nil
}

// field decodes a field that both messages have, with different numbers.
func (r *Request) field(number protowire.Number, value []byte) error {
	const node, typeURL, nonce, problem, version = 1, 2, 6, 7, 8
	field := int(number) // of a DeltaDiscoveryRequest
	if !r.Delta {
		sotw := [...]int{1: version, 2: node, 4: typeURL, 5: nonce, 6: problem}
		if field >= len(sotw) {
			return nil
		}
		field = sotw[field]
	}
	switch field {
	case node:
		if r.NodeBytes += len(value); r.nodeLimit > 0 && r.NodeBytes > r.nodeLimit {
			return nil // its size is rejected later
		}
		if r.Node == nil {
			r.Node = &core.Node{}
		}
		return proto.UnmarshalOptions{Merge: true}.Unmarshal(value, r.Node)
	case problem:
		r.Refused = true
		return r.refusal(value)
	case typeURL, nonce, version:
		if !utf8.Valid(value) {
			return errRequest
		}
	}
	switch field {
	case typeURL:
		r.TypeURL = string(value)
	case nonce:
		r.Nonce = string(value)
	case version:
		r.Version = string(value)
	}
	return nil
}

// refusal decodes a google.rpc.Status, and keeps only the beginning of the message. The message need
// not be UTF-8, because Envoys cut long messages within characters.
func (r *Request) refusal(status []byte) error {
	const message = 2
	ok := reference.EachField(status, func(number protowire.Number, _, text []byte) {
		if number == message && text != nil {
			r.Text = excerpt.CutTo(strings.ToValidUTF8(string(text), "\uFFFD"), MaxRefusal)
		}
	})
	if !ok {
		return errRequest
	}
	return nil
}

// sameFields returns the size of the fields at the beginning of data that have the tag of the first
// one.
func sameFields(data []byte) (size int, ok bool) {
	for tag := data[0]; size < len(data) && data[size] == tag; {
		n, m := protowire.ConsumeVarint(data[size+1:])
		if m < 0 || n > uint64(len(data)-size-1-m) {
			return 0, false
		}
		size += 1 + m + int(n)
	}
	return size, true
}

// knownNames returns the size of the names at the beginning of data if they equal, byte for byte,
// the names of an earlier SotW request. It does not look for the ends of 10,000 names, which takes
// as long as hashing them.
func (r *Request) knownNames(data []byte) (size int, ok bool) {
	for _, before := range r.known {
		n := before.bytes
		if n == 0 || n > len(data) || n < len(data) && data[n] == data[0] {
			continue
		}
		if xxhash.Sum64(data[:n]) == before.hash {
			r.hash = before
			return n, true
		}
	}
	return 0, false
}

// takeNames keeps the names of a SotW request, unless they are known.
func (r *Request) takeNames(regions [][]byte) error {
	if len(regions) != 1 || r.hash.bytes != len(regions[0]) {
		digest := xxhash.New()
		r.hash = nameHash{}
		for _, region := range regions {
			_, _ = digest.Write(region)
			r.hash.bytes += len(region)
		}
		r.hash.hash = digest.Sum64()
	}
	if before, ok := r.known[r.TypeURL]; ok && before == r.hash {
		r.Same = true
		return nil
	}
	for _, region := range regions {
		if err := r.Names.add(region); err != nil {
			return err
		}
	}
	return nil
}

// KeepNames records that the client has the names of a SotW request.
func (r *Request) KeepNames() { r.known[r.TypeURL] = r.hash }

// WildcardName subscribes to everything.
const WildcardName = "*"

// NameList is a list of names that are not decoded yet.
type NameList struct {
	fields []byte
	// Count is the number of names. Wildcard means that the wildcard name is one of them.
	Count    int
	Wildcard bool
}

// add adds encoded fields, which it copies.
func (l *NameList) add(fields []byte) error {
	valid := true
	for name := range eachField(fields) {
		l.Count++
		valid = valid && utf8.Valid(name)
		l.Wildcard = l.Wildcard || string(name) == WildcardName
	}
	if !valid {
		return errRequest
	}
	l.fields = append(l.fields, fields...)
	return nil
}

// All yields the names, which must not be kept.
func (l *NameList) All() iter.Seq[[]byte] { return eachField(l.fields) }

// Decoded returns the names.
func (l *NameList) Decoded() []string {
	if l.Count == 0 {
		return nil
	}
	out := make([]string, 0, l.Count)
	for name := range l.All() {
		out = append(out, string(name))
	}
	return out
}

// eachField yields the values of fields that sameFields has found valid.
func eachField(fields []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for len(fields) > 0 {
			value, n := protowire.ConsumeBytes(fields[1:]) // the tag is a byte
			if fields = fields[1+n:]; !yield(value) {
				return
			}
		}
	}
}
