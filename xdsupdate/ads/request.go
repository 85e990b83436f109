// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"errors"
	"iter"
	"unicode/utf8"

	"github.com/cespare/xxhash/v2"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/runtime/protoiface"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/pilotkit/pilotkit/internal/excerpt"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/resource"
)

// maxRefusal is how many bytes of the text of a refusal are kept, logged and shown: the
// client chooses how long it is.
const maxRefusal = 4096

// request is a DiscoveryRequest or a DeltaDiscoveryRequest. It receives the
// encoded message: to gRPC's codec it is a protobuf message that decodes itself.
// An ACK of a SotW client carries all names that it is subscribed to; they are
// compared with those of the request before by their hash, and are only kept if
// they differ. Names become strings only when the request has its turn, if it counts.
type request struct {
	protoreflect.Message // an empty one: what reflection sees
	methods              *protoiface.Methods
	delta                bool
	// limit is how many bytes are decoded; 0: any number. Of a larger one only the
	// size is known.
	limit int
	// known has the names of the last SotW request of each type. It is the
	// receiving goroutine's.
	known map[string]nameHash

	bytes   int
	node    *core.Node
	typeURL string
	nonce   string
	refused bool
	text    string // why, if refused
	// answered is the response that it is an answer to, if it is one: see stream.begin.
	answered outstanding

	// SotW
	version string
	names   nameList
	same    bool // names are those of the request before, and were not kept
	hash    nameHash

	// Delta
	subscribe, unsubscribe nameList
	initialVersions        initialVersions
	resumed                *resource.Snapshot // nil: nothing
}

// nameHash identifies the names of a request.
type nameHash struct {
	hash  uint64
	bytes int
}

var errRequest = errors.New("not a discovery request")

func newRequest(delta bool, limit int) *request {
	r := &request{Message: (&emptypb.Empty{}).ProtoReflect(), delta: delta, limit: limit, known: make(map[string]nameHash)}
	r.methods = &protoiface.Methods{Unmarshal: func(in protoiface.UnmarshalInput) (protoiface.UnmarshalOutput, error) {
		return protoiface.UnmarshalOutput{Flags: protoiface.UnmarshalInitialized}, r.decode(in.Buf)
	}}
	return r
}

// Reset is called before a message is decoded.
func (r *request) Reset() {
	*r = request{Message: r.Message, methods: r.methods, delta: r.delta, limit: r.limit, known: r.known}
}

// ProtoReflect implements proto.Message.
func (r *request) ProtoReflect() protoreflect.Message { return r }

// Interface implements protoreflect.Message.
func (r *request) Interface() protoreflect.ProtoMessage { return r }

// ProtoMethods implements protoreflect.Message.
func (r *request) ProtoMethods() *protoiface.Methods { return r.methods }

// decode decodes a message. It keeps nothing of data.
func (r *request) decode(data []byte) error {
	if r.bytes = len(data); r.limit > 0 && r.bytes > r.limit {
		return nil // it is refused for its size
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
		if r.repeated(number) {
			if n != 1 {
				return errRequest // a number that is not written in the shortest way
			}
			size, ok := r.knownNames(data)
			if !ok {
				size, ok = sameFields(data)
			}
			if !ok {
				return errRequest
			}
			if !r.delta {
				names = append(names, data[:size])
			} else if err := r.repeat(number, data[:size]); err != nil {
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
	if r.delta {
		r.initialVersions.typeURL = r.typeURL
		return nil
	}
	return r.takeNames(names)
}

const (
	sotwNames                                   = 3
	deltaSubscribe, deltaUnsubscribe, deltaHave = 3, 4, 5
)

// repeated reports whether there may be many fields of a number.
func (r *request) repeated(number protowire.Number) bool {
	if r.delta {
		return number == deltaSubscribe || number == deltaUnsubscribe || number == deltaHave
	}
	return number == sotwNames
}

// repeat takes fields of one number of a delta request.
func (r *request) repeat(number protowire.Number, fields []byte) error {
	switch number {
	case deltaSubscribe:
		return r.subscribe.add(fields)
	case deltaUnsubscribe:
		return r.unsubscribe.add(fields)
	default:
		return r.initialVersions.add(fields)
	}
}

// field decodes a field that is the same in both messages but for its number.
func (r *request) field(number protowire.Number, value []byte) error {
	const node, typeURL, nonce, problem, version = 1, 2, 6, 7, 8
	field := int(number) // of a DeltaDiscoveryRequest
	if !r.delta {
		sotw := [...]int{1: version, 2: node, 4: typeURL, 5: nonce, 6: problem}
		if field >= len(sotw) {
			return nil
		}
		field = sotw[field]
	}
	switch field {
	case node:
		if r.node == nil {
			r.node = &core.Node{}
		}
		return proto.UnmarshalOptions{Merge: true}.Unmarshal(value, r.node)
	case problem:
		r.refused = true
		return r.refusal(value)
	case typeURL, nonce, version:
		if !utf8.Valid(value) {
			return errRequest
		}
	}
	switch field {
	case typeURL:
		r.typeURL = string(value)
	case nonce:
		r.nonce = string(value)
	case version:
		r.version = string(value)
	}
	return nil
}

// refusal decodes a google.rpc.Status, of which only the beginning of the message is
// kept.
func (r *request) refusal(status []byte) error {
	const message = 2
	valid := true
	err := eachText(status, func(number protowire.Number, text []byte) {
		if number == message {
			valid = valid && utf8.Valid(text)
			r.text = excerpt.CutTo(string(text), maxRefusal)
		}
	})
	if !valid {
		return errRequest
	}
	return err
}

// eachText visits the strings, bytes and messages of an encoded message.
func eachText(message []byte, visit func(number protowire.Number, text []byte)) error {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return errRequest
		}
		size := protowire.ConsumeFieldValue(number, kind, message[n:])
		if size < 0 {
			return errRequest
		}
		if kind == protowire.BytesType {
			text, _ := protowire.ConsumeBytes(message[n:])
			visit(number, text)
		}
		message = message[n+size:]
	}
	return nil
}

// sameFields returns the size of the fields at the beginning of data that have
// the tag of the first one.
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

// knownNames returns the size of the names at the beginning of data if they are, byte
// for byte, those of an earlier SotW request. It does not look for the ends of
// 10,000 names, which takes as long as hashing them.
func (r *request) knownNames(data []byte) (size int, ok bool) {
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
func (r *request) takeNames(regions [][]byte) error {
	if len(regions) != 1 || r.hash.bytes != len(regions[0]) {
		r.hash = hashOf(regions)
	}
	if before, ok := r.known[r.typeURL]; ok && before == r.hash {
		r.same = true
		return nil
	}
	for _, region := range regions {
		if err := r.names.add(region); err != nil {
			return err
		}
	}
	return nil
}

// nameList are names that are not decoded yet.
type nameList struct {
	fields []byte
	// count is how many there are, wildcard: that of the wildcard is one of them.
	count    int
	wildcard bool
}

// add adds encoded fields, which it copies.
func (l *nameList) add(fields []byte) error {
	valid := true
	for name := range eachField(fields) {
		l.count++
		valid = valid && utf8.Valid(name)
		l.wildcard = l.wildcard || string(name) == wildcardName
	}
	if !valid {
		return errRequest
	}
	l.fields = append(l.fields, fields...)
	return nil
}

// decoded returns the names.
func (l *nameList) decoded() []string {
	if l.count == 0 {
		return nil
	}
	out := make([]string, 0, l.count)
	for name := range eachField(l.fields) {
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

func hashOf(regions [][]byte) nameHash {
	var out nameHash
	digest := xxhash.New()
	for _, region := range regions {
		_, _ = digest.Write(region)
		out.bytes += len(region)
	}
	out.hash = digest.Sum64()
	return out
}

// accepted notes that the names of a SotW request are the client's now.
func (r *request) accepted() { r.known[r.typeURL] = r.hash }
