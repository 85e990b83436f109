// SPDX-License-Identifier: Apache-2.0

package envoyproxy

import (
	"path/filepath"
	"testing"
)

// TestRefusedAndOutmoded: the rejections of an Envoy, and its uses of deprecated fields, are
// reported.
func TestRefusedAndOutmoded(t *testing.T) {
	file := filepath.Join(t.TempDir(), "listeners.json")
	WriteListeners(t, file, "1", greeter(t, "("))
	p := Start(t, Options{ListenersFile: file})
	p.Await("refusal", func() bool { return p.Refused()["listener_manager.lds.update_rejected"] > 0 })
	if got := p.Outmoded(); len(got) > 0 {
		t.Errorf("outmoded: %v", got)
	}
	outmoded := greeter(t, "")
	outmoded.ReusePort = true //nolint:staticcheck // It is what the test is about.
	WriteListeners(t, file, "2", outmoded)
	p.Await("listener", func() bool { return p.Listeners()["greeter"] != "" })
	const field = "option 'envoy.config.listener.v3.Listener.reuse_port'"
	if got := p.Outmoded(); got["runtime.deprecated_feature_use"] == 0 || got[field] == 0 {
		t.Errorf("outmoded: %v", got)
	}
}
