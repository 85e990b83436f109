// SPDX-License-Identifier: Apache-2.0

package acks

import (
	"cmp"
	"slices"
	"strings"

	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/reference"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/resource"
)

// join makes a response stand for the one before it too: no answer to either is lost, but
// which of the two it was is.
func (o *Response) join(before *Response) {
	o.Oldest = cmp.Or(before.Oldest, before.Nonce)
	o.Before, o.SentAt = before.Before, before.SentAt
	if o.PushedAt.IsZero() || !before.PushedAt.IsZero() {
		o.PushedAt = before.PushedAt
	}
	o.Full, o.IsPart, o.Overdue = o.Full || before.Full, o.IsPart || before.IsPart, o.Overdue || before.Overdue
	o.Listed = joined(before.Listed, o.Listed)
	o.Fresh = o.Fresh.With(before.Fresh)
	o.Left = reference.NewHashes(slices.Concat(o.Left, before.Left))
}

// joined returns the resources of two lists by name, those of the newer list if both have a name.
func joined(older, newer []*resource.State) []*resource.State {
	if len(older) == 0 {
		return newer
	}
	out := slices.Concat(newer, older)
	slices.SortStableFunc(out, resource.CompareNames)
	return slices.CompactFunc(out, func(a, b *resource.State) bool { return a.Name == b.Name })
}

// standsFor reports whether a nonce is that of an older response for which this one stands.
func (o *Response) standsFor(nonce string) bool {
	return o.Oldest != "" && compareNonces(o.Oldest, nonce) <= 0 && compareNonces(nonce, o.Nonce) < 0
}

// compareNonces compares decimal numbers.
func compareNonces(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
}
