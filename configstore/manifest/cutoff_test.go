// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"errors"
	"testing"

	"github.com/pilotkit/pilotkit/configstore/manifest"
)

// TestCutOff: wherever JSON ends that was only partly written, it is an error,
// and not a file without documents.
func TestCutOff(t *testing.T) {
	whole := `{"apiVersion": "v1", "kind": "Free", "metadata": {"name": "a"}, "spec": {"a": ["b", {"c": 1}]}}`
	for n := 1; n < len(whole); n++ {
		docs := manifest.Parse(freeform(), []byte(whole[:n]), manifest.Options{})
		if len(docs) != 1 || !errors.Is(docs[0].Err, manifest.ErrMalformed) {
			t.Errorf("Parse(%s) = %v, want one malformed document", whole[:n], docs)
		}
	}
}
