// SPDX-License-Identifier: Apache-2.0

package realservers

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// field is a header field of a call, as it is on the wire: no library rejects or changes it.
type field struct{ name, value string }

// view is a call as the method that serves it sees it.
type view struct {
	Method   string
	Metadata map[string][][]byte
}

// The frames of HTTP/2 and their flags (RFC 9113).
const (
	frameData         = 0
	frameHeaders      = 1
	frameReset        = 3
	frameSettings     = 4
	frameGoAway       = 7
	frameContinuation = 9
	flagEndStream     = 1
	flagEndHeaders    = 4
	frameLimit        = 16384
)

// silence is how long a server may not respond until a call counts as refused: some servers drop
// what they do not understand.
const silence = 2 * time.Second

// errRefused means that no method has served the call.
var errRefused = errors.New("the call is not served")

// rawCall calls a server in plain text, on a connection of its own, and returns what the method saw.
func rawCall(address string, fields []field) (*view, error) {
	conn, err := net.DialTimeout("tcp", address, silence) //nolint:noctx // bounded
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(silence)); err != nil {
		return nil, err
	}
	out := appendFrame([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), frameSettings, 0, 0, nil)
	var block []byte
	for _, f := range fields {
		block = appendText(appendText(append(block, 0), f.name), f.value) // a literal that is not indexed (RFC 7541, 6.2.2)
	}
	for kind := byte(frameHeaders); kind == frameHeaders || len(block) > 0; kind = frameContinuation {
		part := block[:min(len(block), frameLimit)]
		block = block[len(part):]
		flags := byte(0)
		if len(block) == 0 {
			flags = flagEndHeaders
		}
		out = appendFrame(out, kind, flags, 1, part)
	}
	out = appendFrame(out, frameData, flagEndStream, 1, make([]byte, 5)) // an empty message
	if _, err := conn.Write(out); err != nil {
		return nil, fmt.Errorf("%w: %w", errRefused, err)
	}
	return readView(bufio.NewReader(conn))
}

// readView reads frames up to the end of the call.
func readView(r io.Reader) (*view, error) {
	var body []byte
	for {
		head := make([]byte, 9)
		if _, err := io.ReadFull(r, head); err != nil {
			return nil, fmt.Errorf("%w: %w", errRefused, err)
		}
		payload := make([]byte, int(head[0])<<16|int(head[1])<<8|int(head[2]))
		if _, err := io.ReadFull(r, payload); err != nil {
			return nil, fmt.Errorf("%w: %w", errRefused, err)
		}
		kind, ended := head[3], head[4]&flagEndStream != 0
		switch {
		case kind == frameData:
			body = append(body, payload...)
		case kind == frameReset, kind == frameGoAway && len(body) == 0:
			return nil, fmt.Errorf("%w: frame %d: %q", errRefused, kind, payload)
		}
		if ended && (kind == frameData || kind == frameHeaders) {
			break
		}
	}
	if len(body) < 5 {
		return nil, errRefused
	}
	text, out := &wrapperspb.StringValue{}, &view{}
	if err := proto.Unmarshal(body[5:], text); err != nil {
		return nil, err
	}
	return out, json.Unmarshal([]byte(text.GetValue()), out)
}

func appendFrame(out []byte, kind, flags byte, stream uint32, payload []byte) []byte {
	out = append(out, byte(len(payload)>>16), byte(len(payload)>>8), byte(len(payload)), kind, flags)
	return append(binary.BigEndian.AppendUint32(out, stream), payload...)
}

// appendText appends a string literal without Huffman code (RFC 7541, 5.2).
func appendText(out []byte, text string) []byte {
	n := len(text)
	if n < 127 {
		return append(append(out, byte(n)), text...)
	}
	return append(binary.AppendUvarint(append(out, 127), uint64(n-127)), text...)
}
