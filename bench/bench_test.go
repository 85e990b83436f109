// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"io"
	"strings"
	"testing"

	"github.com/pilotkit/pilotkit/internal/test/testmain"
)

func TestMain(m *testing.M) { testmain.Verify(m) }

// TestRows runs each row once, with 100 objects.
func TestRows(t *testing.T) {
	if err := flag.Set("test.benchtime", "1x"); err != nil {
		t.Fatal(err)
	}
	for _, r := range rows() {
		r.sizes = []int{100}
		var out strings.Builder
		if err := r.write(&out, 1); err != nil {
			t.Error(err)
		}
		if !strings.Contains(out.String(), "| pilotkit | ") || strings.Count(out.String(), " × |") < 4 {
			t.Errorf("%s:\n%s", r.name, &out)
		}
	}
}

// TestMoves: each change reaches all clients, beside idle ones.
func TestMoves(t *testing.T) {
	if times := moves(10, 3, 20, 5); len(times) != 5 {
		t.Error(times)
	}
	endToEnd(io.Discard, nil, 1)
}

// TestScale runs the life of a control plane with a small mesh.
func TestScale(t *testing.T) {
	phases, moves := mesh{namespaces: 5, entries: 100, endpoints: 3, workloads: 20, rules: 20, clients: 20}.run()
	if len(phases) != 6 || len(moves) != 5 {
		t.Errorf("%d phases and %d moves", len(phases), len(moves))
	}
}
