// SPDX-License-Identifier: Apache-2.0

package istio_test

import (
	"errors"
	"fmt"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
)

// Objects can be validated without a store, for instance before they are
// committed to a repository.
func ExampleSchemas() {
	schema, _ := istio.Schemas().Find(istio.ServiceEntry)
	warnings, err := schema.Check(configstore.Config{
		Meta: configstore.Meta{Name: "db", Namespace: "default"},
		Spec: &networking.ServiceEntry{
			Hosts: []string{"db.example.com", "db.example.com"},
			Ports: []*networking.ServicePort{
				{Number: 80, Name: "http", Protocol: "HTTP"},
				{Number: 70000, Name: "admin", Protocol: "HTPP"},
			},
			Resolution: networking.ServiceEntry_DNS,
		},
	})
	for _, w := range warnings {
		fmt.Println("warning:", w)
	}
	if invalid, ok := errors.AsType[*configstore.ValidationError](err); ok {
		for _, v := range invalid.Violations {
			fmt.Println("error:", v.Field)
		}
	}
	// Output:
	// warning: spec.hosts[1]: repeats spec.hosts[0]: "db.example.com"
	// error: spec.ports[1].number
	// error: spec.ports[1].protocol
}
