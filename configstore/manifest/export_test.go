// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"encoding/json"

	"github.com/pilotkit/pilotkit/configstore"
)

// MarshalJSON returns the JSON form of a config, for tests of reading it.
func MarshalJSON(c configstore.Config) ([]byte, error) {
	tree, err := treeOf(c)
	if err != nil {
		return nil, err
	}
	return json.MarshalIndent(tree, "", "    ")
}
