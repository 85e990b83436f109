// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"strings"
	"testing"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
)

// TestNewOfMistakes: New names the mistake at once, and the correct argument.
func TestNewOfMistakes(t *testing.T) {
	var missing *aggregate.Controller
	provider := func() ads.Provider { return newStateProvider(t, "p") }
	for name, test := range map[string]struct {
		services registry.ServiceDiscovery
		options  []ads.Options
		want     []string
	}{
		"two Options":   {nil, make([]ads.Options, 2), []string{"2 arguments of the type ads.Options", "pass one with all settings"}},
		"a nil pointer": {missing, nil, []string{"the discovery is a nil *aggregate.Controller", "or nil itself"}},
		"nil provider":  {nil, []ads.Options{{Providers: []ads.Provider{provider(), nil}}}, []string{"Options.Providers[1] is nil"}},
		"two providers": {nil, []ads.Options{{Providers: []ads.Provider{provider(), provider()}}}, []string{"two providers have the name p"}},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				said, _ := recover().(string)
				for _, want := range append(test.want, "ads.New: ") {
					if !strings.Contains(said, want) {
						t.Errorf("panic %q, want one with %q", said, want)
					}
				}
			}()
			ads.New(test.services, test.options...)
		})
	}
}

// TestNewWithoutServices: nil is a server without services, and no mistake.
func TestNewWithoutServices(t *testing.T) {
	server := ads.New(nil)
	if err := server.Flush(t.Context()); err != nil {
		t.Error(err)
	}
}
