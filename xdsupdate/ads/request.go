// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"errors"
	"unicode/utf8"

	"github.com/cespare/xxhash/v2"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/runtime/protoiface"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/pilotkit/pilotkit/internal/excerpt"
)

// maxRefusal is how many bytes of the text of a refusal are kept, logged and shown: the
// client chooses how long it is.
const maxRefusal = 4096

// request is a DiscoveryRequest or a DeltaDiscoveryRequest. It receives the
// encoded message: to gRPC's codec it is a protobuf message that decodes itself.
// An ACK of a SotW client carries all names that it is subscribed to; they are
// compared with those of the request before by their hash, and are only decoded
// if they differ.
type request struct {
	protoreflect.Message // an empty one: what reflection sees
	methods              *protoiface.Methods
	delta                bool
	// known has the names of the last SotW request of each type. It is the
	// receiving goroutine's.
	known map[string]nameHash

	bytes   int
	node    *core.Node
	typeURL string
	nonce   string
	refused bool
	text    string // why, if refused

	// SotW
	version string
	names   []string
	same    bool // names are those of the request before, and were not decoded
	hash    nameHash

	// Delta
	subscribe, unsubscribe []string
	claims                 claims
	claimed                *snapshot // nil: nothing is claimed
}

// nameHash identifies the names of a request.
type nameHash struct {
	hash  uint64
	bytes int
}

var errRequest = errors.New("not a discovery request")

func newRequest(delta bool) *request {
	r := &request{Message: (&emptypb.Empty{}).ProtoReflect(), delta: delta, known: make(map[string]nameHash)}
	r.methods = &protoiface.Methods{Unmarshal: func(in protoiface.UnmarshalInput) (protoiface.UnmarshalOutput, error) {
		return protoiface.UnmarshalOutput{Flags: protoiface.UnmarshalInitialized}, r.decode(in.Buf)
	}}
	return r
}

// Reset is called before a message is decoded.
func (r *request) Reset() {
	*r = request{Message: r.Message, methods: r.methods, delta: r.delta, known: r.known}
}

// ProtoReflect implements proto.Message.
func (r *request) ProtoReflect() protoreflect.Message { return r }

// Interface implements protoreflect.Message.
func (r *request) Interface() protoreflect.ProtoMessage { return r }

// ProtoMethods implements protoreflect.Message.
func (r *request) ProtoMethods() *protoiface.Methods { return r.methods }

// decode decodes a message. It keeps nothing of data.
func (r *request) decode(data []byte) error {
	r.bytes = len(data)
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
		if number == 3 && !r.delta || number == 5 && r.delta {
			size, ok := r.knownNames(data)
			if !ok {
				size, ok = sameFields(data)
			}
			if !ok {
				return errRequest
			}
			if r.delta {
				if err := r.claims.add(data[:size]); err != nil {
					return err
				}
			} else {
				names = append(names, data[:size])
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
		r.claims.typeURL = r.typeURL
		return nil
	}
	return r.decodeNames(names)
}

// field decodes a field that is the same in both messages but for its number.
func (r *request) field(number protowire.Number, value []byte) error {
	const node, typeURL, subscribe, unsubscribe, nonce, problem, version = 1, 2, 3, 4, 6, 7, 8
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
		status := &rpcstatus.Status{}
		r.refused = true
		err := proto.Unmarshal(value, status)
		r.text = excerpt.CutTo(status.GetMessage(), maxRefusal)
		return err
	case typeURL, nonce, version, subscribe, unsubscribe:
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
	case subscribe:
		r.subscribe = append(r.subscribe, string(value))
	case unsubscribe:
		r.unsubscribe = append(r.unsubscribe, string(value))
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

// decodeNames decodes the names of a SotW request, unless they are known.
func (r *request) decodeNames(regions [][]byte) error {
	if len(regions) != 1 || r.hash.bytes != len(regions[0]) {
		r.hash = hashOf(regions)
	}
	if before, ok := r.known[r.typeURL]; ok && before == r.hash {
		r.same = true
		return nil
	}
	for _, region := range regions {
		for len(region) > 0 {
			_, _, n := protowire.ConsumeTag(region)
			name, m := protowire.ConsumeBytes(region[n:])
			if !utf8.Valid(name) {
				return errRequest
			}
			r.names, region = append(r.names, string(name)), region[n+m:]
		}
	}
	return nil
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
