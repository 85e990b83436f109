// SPDX-License-Identifier: Apache-2.0

package configstore_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pilotkit/pilotkit/configstore"
)

// silentSource says no more than whether it has synced, stated all that there is to say.
type (
	silentSource bool
	stated       struct{ silentSource }
)

func (s silentSource) HasSynced() bool { return bool(s) }

func (stated) SourceState() configstore.SourceState {
	return configstore.SourceState{
		Freshness: configstore.Stale, Err: errors.New("away"), Problems: []configstore.SourceProblem{{Text: "a", Warning: true}, {Text: "b"}, {Text: "c"}},
	}
}

// TestSourceOf: a source reports as much of its state as it knows.
func TestSourceOf(t *testing.T) {
	t.Parallel()
	silent := configstore.SourceOf("silent", silentSource(true))
	if diff := cmp.Diff(configstore.SourceState{Synced: true}, silent.State()); silent.Name != "silent" || diff != "" {
		t.Errorf("%s (-want +got):\n%s", silent.Name, diff)
	}
	state := configstore.SourceOf("stated", stated{true}).State()
	if errs, warnings := state.Count(); state.Freshness != configstore.Stale || errs != 3 || warnings != 1 {
		t.Errorf("%d errors and %d warnings of %+v", errs, warnings, state)
	}
	defer func() {
		if text, _ := recover().(string); !strings.Contains(text, "source none is nil") {
			t.Errorf("a nil source: %q", text)
		}
	}()
	configstore.SourceOf("none", nil)
}

// TestCheckSources: sources that cannot be told apart, or asked, are named.
func TestCheckSources(t *testing.T) {
	t.Parallel()
	good := configstore.SourceOf("a", silentSource(true))
	for want, sources := range map[string][]configstore.Source{
		"":                                     {good, {Name: "b", State: good.State}},
		`source 1: invalid source name ""`:     {good, {State: good.State}},
		`source 0: invalid source name "\xff"`: {{Name: "\xff", State: good.State}},
		`two sources have the name "a"`:        {good, good},
		`source "b": State is nil`:             {good, {Name: "b"}},
	} {
		got := ""
		if err := configstore.CheckSources(sources); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestFreshness: its texts, and the two values that are known.
func TestFreshness(t *testing.T) {
	t.Parallel()
	for f, want := range map[configstore.Freshness]string{
		configstore.FreshnessUnknown: "unknown", configstore.FreshnessOf(false): "fresh", configstore.FreshnessOf(true): "stale",
	} {
		if got := f.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestPendingSources: Pending gives the error of a source, or else a problem that is not a warning.
func TestPendingSources(t *testing.T) {
	t.Parallel()
	problems := []configstore.SourceProblem{{Text: "a", Warning: true}, {Text: "b"}}
	const unread = "nothing has been read: Run has not been called, or the origin has not answered"
	for want, state := range map[string]configstore.SourceState{
		" (away)":            {Err: errors.New("away"), Problems: problems},
		" (b)":               {Problems: problems},
		" (" + unread + ")":  {Problems: problems[:1]},
		" (" + unread + ") ": {Freshness: configstore.Stale},
		"":                   {Freshness: configstore.Stale, StaleSince: time.Unix(1, 0)},
	} {
		if got, want := configstore.Pending(pendingState(state)), "configstore_test.pendingState"+strings.TrimRight(want, " "); got != want {
			t.Errorf("%+v: %q, want %q", state, got, want)
		}
	}
}

type pendingState configstore.SourceState

func (pendingState) HasSynced() bool                        { return false }
func (s pendingState) SourceState() configstore.SourceState { return configstore.SourceState(s) }
