// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"slices"
	"unicode/utf8"

	"github.com/cespare/xxhash/v2"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/reference"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/resource"
)

// InitialVersions are the resources that a returning delta client lists: the names and versions of
// initial_resource_versions. Nearly always these equal the present snapshot, or the list of many
// other clients that come back after an outage of the server. So they are compared as a whole, by
// their sum, which snapshots have, too; they are decoded only if no snapshot equals them.
type InitialVersions struct {
	VersionsKey
	fields []byte // initial_resource_versions, encoded
}

// VersionsKey identifies the versions, and the snapshot that has them.
type VersionsKey struct {
	typeURL string
	sum     uint64
	Count   int
}

// add adds fields of initial_resource_versions, which it copies.
func (c *InitialVersions) add(fields []byte) error {
	c.fields = append(c.fields, fields...)
	return eachVersion(fields, func(name, version []byte) {
		hash := resource.ParseVersion(version)
		if hash == 0 { // another server's: no resource of ours equals it
			hash = ^xxhash.Sum64(version)
		}
		c.sum += resource.Weight(xxhash.Sum64(name), hash)
		c.Count++
	})
}

// eachVersion visits the entries of encoded fields.
func eachVersion(fields []byte, visit func(name, version []byte)) error {
	valid := true
	ok := reference.EachField(fields, func(_ protowire.Number, _, entry []byte) {
		var key, value []byte
		valid = reference.EachField(entry, func(number protowire.Number, _, text []byte) {
			switch {
			case text == nil:
			case number == 1:
				key = text
			case number == 2:
				value = text
			}
		}) && utf8.Valid(key) && valid
		visit(key, value)
	})
	if !ok || !valid {
		return errRequest
	}
	return nil
}

// Snapshot decodes the versions.
func (c *InitialVersions) Snapshot() *resource.Snapshot {
	made := make([]resource.State, 0, c.Count)
	_ = eachVersion(c.fields, func(name, version []byte) { // the fields are valid: add has decoded them
		made = append(made, resource.State{TypeURL: c.typeURL, Name: string(name), Hash: resource.ParseVersion(version)})
	})
	list := make([]*resource.State, len(made))
	for i := range made {
		r := &made[i]
		if r.Hash == 0 {
			r.Marker = resource.Unknown
		}
		r.SetMade()
		list[i] = r
	}
	slices.SortStableFunc(list, resource.CompareNames)
	return resource.NewSnapshot(slices.CompactFunc(list, func(a, b *resource.State) bool { return a.Name == b.Name }))
}

// Is reports whether a snapshot has exactly these versions.
func (c VersionsKey) Is(s *resource.Snapshot) bool {
	return s != nil && s.Sum == c.sum && s.List.Len() == c.Count
}
