// SPDX-License-Identifier: Apache-2.0

package storetest_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/storetest"
	"github.com/pilotkit/pilotkit/internal/test/contract"
)

func TestRecorderExpect(t *testing.T) {
	call := func(r *storetest.Recorder, name string) {
		r.Handle(configstore.Config{}, configstore.Config{Meta: configstore.Meta{
			GroupVersionKind: configstore.GroupVersionKind{Kind: "Widget"}, Namespace: "ns", Name: name,
		}}, configstore.EventAdd)
	}
	for _, test := range []struct {
		name  string
		calls string
		want  []string
		fails bool
	}{
		{"nothing", "", nil, false},
		{"as wanted", "a b", []string{"add Widget ns/a", "add Widget ns/b"}, false},
		{"too few", "a", []string{"add Widget ns/a", "add Widget ns/b"}, true},
		{"too many", "a b", []string{"add Widget ns/a"}, true},
		{"another order", "b a", []string{"add Widget ns/a", "add Widget ns/b"}, true},
		{"one too many", "a", nil, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			// The wait for missing calls costs no time in a bubble.
			synctest.Test(t, func(t *testing.T) {
				var r storetest.Recorder
				go func() {
					for name := range strings.FieldsSeq(test.calls) {
						call(&r, name)
					}
				}()
				synctest.Wait()
				failures := contract.Capture(t, func(tb testing.TB) {
					tb.Helper()
					r.Expect(tb, test.want...)
				})
				if (len(failures) > 0) != test.fails {
					t.Errorf("Expect(%v) after %q: failures %v, want some: %t", test.want, test.calls, failures, test.fails)
				}
				if calls := r.Calls(); len(calls) > 0 {
					t.Errorf("%v was not taken", calls)
				}
			})
		})
	}
}
