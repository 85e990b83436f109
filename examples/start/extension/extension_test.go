// SPDX-License-Identifier: Apache-2.0

package extension_test

import (
	"errors"
	"log/slog"
	"testing"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/examples/start/extension"
)

func TestProtect(t *testing.T) {
	store := memory.Make(istio.Schemas(), memory.Options{DetectMutations: true}) // panics if a handler changes an object
	configs := memory.NewController(store)
	extension.Protect(configs, slog.New(slog.NewTextHandler(t.Output(), nil)))
	entries := configstore.Typed[*networking.ServiceEntry](store)
	rules := configstore.Typed[*networking.DestinationRule](store)

	entry := configstore.NewConfig("bank", "shop", &networking.ServiceEntry{
		Hosts: []string{"bank.example.com"}, Location: networking.ServiceEntry_MESH_EXTERNAL,
		Ports:      []*networking.ServicePort{{Number: 443, Name: "tls", Protocol: "TLS"}},
		Resolution: networking.ServiceEntry_DNS,
	})
	if _, err := entries.Create(entry); err != nil { // Istio's validation: a test cannot store what a cluster rejects
		t.Fatal(err)
	}
	configs.Drain() // all handlers have run, and what they wrote has had its effect: no sleeps
	rule, ok := rules.Get("bank", "shop")
	if !ok || rule.Spec.GetHost() != "bank.example.com" {
		t.Fatalf("the rule is %v", rule)
	}

	if err := entries.Delete("bank", "shop", nil); err != nil {
		t.Fatal(err)
	}
	configs.Drain()
	if _, ok := rules.Get("bank", "shop"); ok {
		t.Error("the rule outlives its entry")
	}

	entry.Spec.Ports[0].Number = 70000
	if _, err := entries.Create(entry); !errors.Is(err, configstore.ErrInvalid) {
		t.Errorf("the error is %v", err)
	}
}
