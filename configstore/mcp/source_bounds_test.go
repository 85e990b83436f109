// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/protobuf/types/known/anypb"
	mcp "istio.io/api/mcp/v1alpha1"

	"github.com/pilotkit/pilotkit/configstore/istio"
)

// TestManyBadResources: for a response of invalid resources, with and without names, a bounded
// number of errors and objects is kept; the rest is counted, valid objects are stored, and the next
// response is applied.
func TestManyBadResources(t *testing.T) {
	const many = 20_000
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		d, source, end := drive(t, store, only(istio.ServiceEntry))
		defer end()
		d.open(1)
		d.say("1", entries(t, "a", "b")...)
		resources := entries(t, "a", "c")
		for i := range many {
			resources = append(resources, &anypb.Any{}, pack(t, &mcp.Resource{Metadata: &mcp.Metadata{Name: fmt.Sprint("default/bad", i)}}))
		}
		d.say("2", resources...)
		report := source.Report()
		if n := len(report.Errors); n > 2*1000+2 || n < 1000 {
			t.Errorf("%d errors are reported", n)
		}
		counted := 0
		for _, e := range report.Errors {
			if strings.Contains(e.Error(), fmt.Sprint(many-1000, " more resources")) {
				counted++
			}
		}
		if n := len(source.byType[serviceEntryURL].objects); counted != 2 || n > 1000+3 {
			t.Errorf("%d errors say how many more there are, %d objects are kept", counted, n)
		}
		if got := names(store); got != "a b c" { // b may be one of those without a name
			t.Errorf("the store has %q", got)
		}
		d.say("3", entries(t, "a", "c")...)
		if got := names(store); got != "a c" || len(source.Report().Errors) != 0 {
			t.Errorf("after it the store has %q, and %d errors are reported", got, len(source.Report().Errors))
		}
	})
}
