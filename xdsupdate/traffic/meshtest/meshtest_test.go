// SPDX-License-Identifier: Apache-2.0

package meshtest_test

import (
	"testing"

	"github.com/pilotkit/pilotkit/internal/test/testmain"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/meshtest"
)

func TestMain(m *testing.M) { testmain.Verify(m) }

// FuzzParse: a file of cases is taken or refused with places, and never panics.
func FuzzParse(f *testing.F) {
	f.Add("cases:\n- {name: a, from: {gateway: b}, request: {port: 80, headers: {a: b}}, expect: {status: 404}}\n")
	f.Add("cases: {a: [*b]}\n---\n&b x")
	f.Add("- - ? [")
	f.Fuzz(func(t *testing.T, text string) {
		cases, err := meshtest.Parse("f", []byte(text))
		if err == nil && len(cases) == 0 {
			t.Error("a file without cases is taken")
		}
		for _, c := range cases {
			if err == nil && (c.Name == "" || c.Line == 0) {
				t.Errorf("%+v", c)
			}
		}
	})
}
