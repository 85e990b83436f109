// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"runtime"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/configstore"
)

// encoder makes records.
type encoder struct{ data []byte }

// flush writes the record that was made, and begins the next one.
func (e *encoder) flush(to io.Writer) error {
	if len(e.data) > math.MaxUint32 {
		return errors.New("an object is larger than 4 GiB")
	}
	length := binary.LittleEndian.AppendUint32(nil, uint32(len(e.data))) //nolint:gosec // checked
	if _, err := to.Write(length); err != nil {
		return err //nolint:wrapcheck // the caller says of what
	}
	_, err := to.Write(e.data)
	e.data = e.data[:0]
	return err //nolint:wrapcheck // the caller says of what
}

func (e *encoder) uvarint(v uint64) { e.data = binary.AppendUvarint(e.data, v) }
func (e *encoder) varint(v int64)   { e.data = binary.AppendVarint(e.data, v) }

func (e *encoder) string(s string) {
	e.uvarint(uint64(len(s)))
	e.data = append(e.data, s...)
}

func (e *encoder) bool(b bool) {
	if b {
		e.uvarint(1)
	} else {
		e.uvarint(0)
	}
}

func (e *encoder) kinds(schemas []configstore.Schema) {
	e.uvarint(uint64(len(schemas)))
	for _, s := range schemas {
		k := s.GroupVersionKind
		for _, text := range []string{k.Group, k.Version, k.Kind, typeOf(s.Spec), typeOf(s.Status)} {
			e.string(text)
		}
	}
}

// typeOf returns the name of a message's type; nil has none.
func typeOf(m proto.Message) string {
	if m == nil {
		return ""
	}
	return string(m.ProtoReflect().Descriptor().FullName())
}

// object encodes an object without its kind.
func (e *encoder) object(c *configstore.Config) error {
	for _, text := range []string{c.UID, c.Name, c.Namespace, c.Domain, c.ResourceVersion} {
		e.string(text)
	}
	e.strings(c.Labels)
	e.strings(c.Annotations)
	e.time(c.CreationTimestamp)
	e.varint(c.Generation)
	e.uvarint(uint64(len(c.OwnerReferences)))
	for _, o := range c.OwnerReferences {
		for _, text := range []string{o.APIVersion, o.Kind, o.Name, o.UID} {
			e.string(text)
		}
		e.bool(o.Controller)
		e.bool(o.BlockOwnerDeletion)
	}
	if err := e.message(c.Spec); err != nil {
		return err
	}
	return e.message(c.Status)
}

func (e *encoder) strings(m map[string]string) {
	e.uvarint(uint64(len(m)))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		e.string(k)
		e.string(m[k])
	}
}

func (e *encoder) time(t time.Time) {
	e.varint(t.Unix())
	e.uvarint(uint64(t.Nanosecond())) //nolint:gosec // 0 to 999,999,999
}

func (e *encoder) message(m proto.Message) error {
	e.bool(m != nil)
	if m == nil {
		return nil
	}
	options := proto.MarshalOptions{Deterministic: true}
	e.uvarint(uint64(options.Size(m))) //nolint:gosec // not negative
	var err error
	e.data, err = options.MarshalAppend(e.data, m)
	return err //nolint:wrapcheck // the caller says of what
}

// decoder reads a record. After a failure everything that it returns is zero.
type decoder struct {
	data   []byte
	failed bool
}

// end returns an error unless the record was read completely and was complete.
func (d *decoder) end() error {
	if d.failed || len(d.data) > 0 {
		return ErrCorrupt
	}
	return nil
}

func (d *decoder) fail() { d.data, d.failed = nil, true }

// skip drops the n bytes of a number. If n is not positive, the number could not be read.
func (d *decoder) skip(n int) {
	if n <= 0 {
		d.fail()
		return
	}
	d.data = d.data[n:]
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.data)
	d.skip(n)
	return v
}

func (d *decoder) varint() int64 {
	v, n := binary.Varint(d.data)
	d.skip(n)
	return v
}

func (d *decoder) bytes() []byte {
	n := d.uvarint()
	if n > uint64(len(d.data)) {
		d.fail()
		return nil
	}
	out := d.data[:n:n]
	d.data = d.data[n:]
	return out
}

func (d *decoder) string() string { return string(d.bytes()) }
func (d *decoder) bool() bool     { return d.uvarint() == 1 }

// count returns the number of elements that follow. Each element takes at least one byte.
func (d *decoder) count() int {
	n := d.uvarint()
	if n > uint64(len(d.data)) {
		d.fail()
		return 0
	}
	return int(n) //nolint:gosec // no more than there are bytes
}

func (d *decoder) strings() map[string]string {
	n := d.count()
	if n == 0 {
		return nil
	}
	out := make(map[string]string, n)
	for range n {
		k := d.string()
		out[k] = d.string()
	}
	return out
}

func (d *decoder) time() time.Time {
	seconds, nanoseconds := d.varint(), d.uvarint()
	if nanoseconds >= uint64(time.Second) {
		d.fail()
		return time.Time{}
	}
	return time.Unix(seconds, int64(nanoseconds)).UTC() //nolint:gosec // less than a second
}

// message decodes into a new message of a type, nil if there is none.
func (d *decoder) message(kind proto.Message) proto.Message {
	if !d.bool() {
		return nil
	}
	data := d.bytes()
	if d.failed || kind == nil {
		d.fail()
		return nil
	}
	out := kind.ProtoReflect().New().Interface()
	if err := proto.Unmarshal(data, out); err != nil {
		d.fail()
		return nil
	}
	return out
}

// object decodes a record.
func object(record []byte, kinds []configstore.Schema) (c configstore.Config, err error) {
	d := &decoder{data: record}
	kind := d.uvarint()
	if kind >= uint64(len(kinds)) {
		return c, ErrCorrupt
	}
	schema := &kinds[kind]
	c.GroupVersionKind = schema.GroupVersionKind
	for _, text := range []*string{&c.UID, &c.Name, &c.Namespace, &c.Domain, &c.ResourceVersion} {
		*text = d.string()
	}
	c.Labels, c.Annotations = d.strings(), d.strings()
	c.CreationTimestamp, c.Generation = d.time(), d.varint()
	for range d.count() {
		c.OwnerReferences = append(c.OwnerReferences, configstore.OwnerReference{
			APIVersion: d.string(), Kind: d.string(), Name: d.string(), UID: d.string(), Controller: d.bool(), BlockOwnerDeletion: d.bool(),
		})
	}
	c.Spec, c.Status = d.message(schema.Spec), d.message(schema.Status)
	return c, d.end()
}

// readObjects decodes records, on all processors.
func readObjects(records [][]byte, kinds []configstore.Schema) ([]configstore.Config, error) {
	out := make([]configstore.Config, len(records))
	workers := max(1, min(runtime.GOMAXPROCS(0), len(records)))
	errs := make([]error, workers)
	var group sync.WaitGroup
	for w := range workers {
		group.Go(func() {
			for i := w * len(records) / workers; i < (w+1)*len(records)/workers; i++ {
				c, err := object(records[i], kinds)
				if err != nil {
					errs[w] = fmt.Errorf("object %d: %w", i, err)
					return
				}
				out[i] = c
			}
		})
	}
	group.Wait()
	return out, errors.Join(errs...)
}
