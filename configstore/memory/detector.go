// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/listing"
)

// detector computes the fingerprints by which changes of stored objects are
// found.
type detector struct {
	on   bool
	seed maphash.Seed
}

func newDetector(on bool) detector {
	if !on {
		return detector{}
	}
	return detector{on: true, seed: maphash.MakeSeed()}
}

// sum returns the fingerprint of an object, or 0 if the detector is off.
func (d *detector) sum(o *object) uint64 {
	if !d.on || !o.exists() {
		return 0
	}
	return maphash.Bytes(d.seed, encode(&o.Config))
}

// verify panics if an object is not as it was stored.
func (s *Store) verify(o *object) {
	if s.detector.on {
		s.detector.verify(o)
	}
}

func (d *detector) verify(o *object) {
	if o.exists() && d.sum(o) != o.sum {
		panic(fmt.Sprintf("memory: %s was changed after it was stored; stored objects are read-only: change a Clone",
			o.Key().Object()))
	}
}

// verifyList verifies those objects of a list that are the stored ones now.
func (s *Store) verifyList(k *kind, items []*configstore.Config) {
	if !s.detector.on {
		return
	}
	for _, c := range items {
		s.verifyConfig(k, c)
	}
}

func (s *Store) verifyConfig(k *kind, c *configstore.Config) {
	if e := k.objects.Entry(listing.KeyOf(c)); e != nil && &e.Value.Config == c {
		s.verify(&e.Value)
	}
}

// encode writes everything that makes an object, without ambiguity.
func encode(c *configstore.Config) []byte {
	var b []byte
	str := func(values ...string) {
		for _, v := range values {
			b = append(binary.AppendUvarint(b, uint64(len(v))), v...)
		}
	}
	str(c.GroupVersionKind.Group, c.GroupVersionKind.Version, c.GroupVersionKind.Kind,
		c.UID, c.Name, c.Namespace, c.Domain, c.ResourceVersion)
	for _, m := range []map[string]string{c.Labels, c.Annotations} {
		b = binary.AppendUvarint(b, uint64(len(m)))
		for _, k := range slices.Sorted(maps.Keys(m)) {
			str(k, m[k])
		}
	}
	for _, r := range c.OwnerReferences {
		str(fmt.Sprintf("%+v", r))
	}
	b = binary.AppendVarint(b, c.CreationTimestamp.UnixNano())
	b = binary.AppendVarint(b, c.Generation)
	for _, m := range []proto.Message{c.Spec, c.Status} {
		if m == nil {
			b = append(b, 0)
			continue
		}
		text, err := proto.MarshalOptions{AllowPartial: true, Deterministic: true}.Marshal(m)
		if err != nil {
			text = []byte(err.Error()) // for example invalid UTF-8: the same each time
		}
		str(string(m.ProtoReflect().Descriptor().FullName()), string(text))
	}
	return b
}
