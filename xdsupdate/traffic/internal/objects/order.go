// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"cmp"
	"strings"

	"github.com/pilotkit/pilotkit/configstore"
)

// CompareConfigs is the order of objects of one kind: by age, the oldest first, then by name, then
// by namespace (Istio 1.30).
func CompareConfigs(a, b *configstore.Config) int {
	return cmp.Or(
		a.CreationTimestamp.Compare(b.CreationTimestamp),
		strings.Compare(a.Name, b.Name),
		strings.Compare(a.Namespace, b.Namespace),
	)
}
