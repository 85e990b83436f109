// SPDX-License-Identifier: Apache-2.0

package contract_test

import (
	"slices"
	"testing"

	"github.com/pilotkit/pilotkit/internal/test/contract"
)

// suite is one of the smallest kind.
type suite struct {
	*contract.T
	subject string
}

func TestRun(t *testing.T) {
	var setUps int
	var ran []string
	record := func(s *suite) { ran = append(ran, s.Name()+" on "+s.subject) }
	checks := []contract.Check[*suite]{
		{Name: "Applies", Skip: func(*suite) string { return "" }, Run: record},
		{Name: "Skipped", Skip: func(s *suite) string { return "not for " + s.subject }, Run: record},
		{Name: "Always", Run: record},
	}
	contract.Run(t, checks, func(ct *contract.T) *suite {
		setUps++
		return &suite{T: ct, subject: "it"}
	})
	if want := []string{"TestRun/Applies on it", "TestRun/Always on it"}; !slices.Equal(ran, want) || setUps != 3 {
		t.Errorf("ran %v with %d subjects, want %v with 3", ran, setUps, want)
	}
}
