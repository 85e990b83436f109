// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/pilotkit/pilotkit/configstore"
)

// The format, numbers little endian:
//
//	magic            16 bytes
//	version          4 bytes
//	written          8 bytes, nanoseconds since 1970
//	kinds            a record: their number, group, version, kind, type of the spec, of the status
//	objects          a record each: the number of the kind, then as in object.go
//	end              4 bytes, the length 0
//	checksum         8 bytes, XXH64 of all before
//
// A record is its length, 4 bytes, and so many bytes.
const (
	magic   = "pilot-checkpoint"
	version = 1

	headerSize   = len(magic) + 4 + 8
	checksumSize = 8
)

// write writes the objects of a reader, and returns the number of bytes.
func write(to io.Writer, configs configstore.Reader, schemas configstore.Schemas, at time.Time) (err error) {
	sum := xxhash.New()
	out := io.MultiWriter(to, sum)
	header := binary.LittleEndian.AppendUint32([]byte(magic), version)
	header = binary.LittleEndian.AppendUint64(header, uint64(at.UnixNano())) //nolint:gosec // read back as it is
	if _, err := out.Write(header); err != nil {
		return err //nolint:wrapcheck // the caller says of what
	}
	kinds := schemas.All()
	e := &encoder{}
	e.kinds(kinds)
	if err := e.flush(out); err != nil {
		return err
	}
	for i, schema := range kinds {
		for _, c := range configs.List(schema.GroupVersionKind, configstore.NamespaceAll) {
			e.uvarint(uint64(i)) //nolint:gosec // an index
			if err := e.object(c); err != nil {
				return fmt.Errorf("encode %s: %w", c.Key().Object(), err)
			}
			if err := e.flush(out); err != nil {
				return err
			}
		}
	}
	if _, err := out.Write(make([]byte, 4)); err != nil {
		return err //nolint:wrapcheck // the caller says of what
	}
	_, err = to.Write(binary.LittleEndian.AppendUint64(nil, sum.Sum64()))
	return err //nolint:wrapcheck // the caller says of what
}

// read returns the objects of a file, in its order, and when it was written.
func read(data []byte, schemas configstore.Schemas) (objects []configstore.Config, at time.Time, err error) {
	if len(data) < len(magic) || !bytes.HasPrefix(data, []byte(magic)) {
		return nil, at, ErrForeign
	}
	if len(data) < headerSize+checksumSize {
		return nil, at, ErrCorrupt
	}
	// Before the checksum, whose place may be another one in a later version.
	if v := binary.LittleEndian.Uint32(data[len(magic):]); v != version {
		return nil, at, fmt.Errorf("%w: %d, not %d", ErrVersion, v, version)
	}
	body, sum := data[:len(data)-checksumSize], data[len(data)-checksumSize:]
	if xxhash.Sum64(body) != binary.LittleEndian.Uint64(sum) {
		return nil, at, ErrCorrupt
	}
	at = time.Unix(0, int64(binary.LittleEndian.Uint64(body[len(magic)+4:]))) //nolint:gosec // written as it was
	records, err := split(body[headerSize:])
	if err != nil {
		return nil, at, err
	}
	kinds, err := readKinds(records[0], schemas)
	if err != nil {
		return nil, at, err
	}
	objects, err = readObjects(records[1:], kinds)
	return objects, at, err
}

// split returns the records of a body, at least one.
func split(body []byte) (records [][]byte, err error) {
	for {
		if len(body) < 4 {
			return nil, ErrCorrupt
		}
		n := binary.LittleEndian.Uint32(body)
		body = body[4:]
		if n == 0 {
			if len(body) > 0 || len(records) == 0 {
				return nil, ErrCorrupt
			}
			return records, nil
		}
		if uint64(n) > uint64(len(body)) {
			return nil, ErrCorrupt
		}
		records = append(records, body[:n:n])
		body = body[n:]
	}
}

// readKinds returns the schemas of the kinds of a file.
func readKinds(record []byte, schemas configstore.Schemas) ([]configstore.Schema, error) {
	d := &decoder{data: record}
	n := d.uvarint()
	var out []configstore.Schema
	for range n {
		kind := configstore.GroupVersionKind{Group: d.string(), Version: d.string(), Kind: d.string()}
		spec, status := d.string(), d.string()
		if d.failed {
			break
		}
		schema, ok := schemas.Find(kind)
		if !ok {
			return nil, fmt.Errorf("%w: %s", ErrKind, kind)
		}
		if spec != typeOf(schema.Spec) || status != typeOf(schema.Status) {
			return nil, fmt.Errorf("%w: %s of %s and %s", ErrKind, kind, spec, status)
		}
		out = append(out, schema)
	}
	return out, d.end()
}
