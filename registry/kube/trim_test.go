// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/pilotkit/pilotkit/registry/kube"
)

// Trimming an object of a list removes no field that the registry reads: the result equals that of
// the same object in a watch.
func TestTrimmedObjects(t *testing.T) {
	t.Parallel()
	h := &history{Rand: rand.New(rand.NewPCG(1, 0))}
	for _, kind := range []string{"Service", "EndpointSlice", "Pod", "Node", "Namespace"} {
		for range 50 {
			text, err := json.Marshal(h.object(kind))
			if err != nil {
				t.Fatal(err)
			}
			whole, trimmed := emptyObject(kind), emptyObject(kind)
			for _, o := range []any{whole, trimmed} {
				if err := json.Unmarshal(text, o); err != nil {
					t.Fatal(err)
				}
			}
			kube.Trim(trimmed)
			if got, want := kube.Convert(trimmed), kube.Convert(whole); !reflect.DeepEqual(got, want) {
				t.Errorf("read of the trimmed %s: %+v, want %+v", text, got, want)
			}
		}
	}
}
