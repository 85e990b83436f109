// SPDX-License-Identifier: Apache-2.0

package publish_test

import (
	"runtime"
	"testing"
	"weak"

	"github.com/pilotkit/pilotkit/registry/internal/publish"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// TestFormerStatesAreLetGo: a state may know the one after it, so that whoever keeps an
// old one keeps all that came since.
func TestFormerStatesAreLetGo(t *testing.T) {
	var p *publish.Publisher[string, state]
	var former []weak.Pointer[state]
	p = publish.New(publish.Options[string, state]{
		Initial: &state{"the first one"}, Inline: true, Updater: xdsupdate.Discard{}, Services: (*state).services, Workloads: (*state).workloads,
		Handle: func(names []string) {
			p.Publish(&state{names[0]}, change(names[0]))
		},
	})
	for _, name := range []string{"a", "b", "c"} {
		former = append(former, weak.Make(p.State()))
		p.Enqueue(name)
	}
	runtime.GC()
	for i, w := range former {
		if w.Value() != nil {
			t.Errorf("state %d is kept", i)
		}
	}
	if got := (*p.State())[0]; got != "c" {
		t.Errorf("the state is %q", got)
	}
}
