// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"testing"

	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/resource"
)

// TestDifferences: each state of clients, of each protocol and kind of client, has its own difference.
func TestDifferences(t *testing.T) {
	one, two := &resource.Snapshot{}, &resource.Snapshot{}
	keys := []differenceKey{{one, clientTraits{}}, {two, clientTraits{}}, {one, clientTraits{delta: true}}, {two, clientTraits{returning: true}}}
	var all differences
	made := map[differenceKey]*difference{}
	for _, key := range keys {
		if all.get(key) != nil {
			t.Errorf("there is a difference for %+v before one was added", key.clientTraits)
		}
		made[key] = &difference{}
		all.add(key, made[key])
	}
	for _, key := range keys {
		if all.get(key) != made[key] {
			t.Errorf("another difference than was added for %+v", key.clientTraits)
		}
	}
}
