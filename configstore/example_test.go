// SPDX-License-Identifier: Apache-2.0

package configstore_test

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/types/known/structpb"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/memory"
)

// A typed view reads and writes one kind of a store without type assertions. The
// kind follows from the type of its specs.
func ExampleTyped() {
	store := memory.Make(istio.Schemas())
	entries := configstore.Typed[*networking.ServiceEntry](store)

	_, err := entries.Create(configstore.NewConfig("db", "default", &networking.ServiceEntry{
		Hosts:      []string{"db.example.com"},
		Ports:      []*networking.ServicePort{{Number: 5432, Name: "postgres", Protocol: "TCP"}},
		Resolution: networking.ServiceEntry_DNS,
	}))
	if err != nil {
		fmt.Println(err)
	}

	// Stored objects are shared and read-only: clone, change, update. The update fails with
	// ErrConflict if the object has changed meanwhile.
	db, _ := entries.Get("db", "default")
	db = db.Clone()
	db.Spec.Ports[0].Number = 70000
	_, err = entries.Update(db)
	fmt.Println(errors.Is(err, configstore.ErrInvalid), err)

	db.Spec.Ports[0].Number = 5433
	if _, err := entries.Update(db); err != nil {
		fmt.Println(err)
	}
	for entry := range entries.Select(configstore.NamespaceAll, nil) {
		fmt.Println(entry.Name, entry.Spec.Hosts, entry.Spec.Ports[0].Number)
	}
	// Output:
	// true update: ServiceEntry default/db is invalid: spec.ports[0].number: must be 1–65535, is 70000
	// db [db.example.com] 5433
}

// Handlers too can be given objects with their type.
func ExampleTypedHandler() {
	controller := memory.NewController(memory.Make(istio.Schemas()))
	entries := configstore.Typed[*networking.WorkloadEntry](controller)
	show := func(old, curr configstore.ConfigOf[*networking.WorkloadEntry], event configstore.Event) {
		// old is the zero value unless the event is an update.
		fmt.Println(event, curr.Name, old.Spec.GetAddress(), "→", curr.Spec.GetAddress())
	}
	controller.RegisterEventHandler(istio.WorkloadEntry, configstore.TypedHandler(show))

	vm := configstore.NewConfig("vm1", "default", &networking.WorkloadEntry{Address: "10.0.0.1"})
	vm.Labels = map[string]string{"app": "db"}
	if _, err := entries.Create(vm); err != nil {
		fmt.Println(err)
	}
	vm = vm.Clone()
	vm.Spec.Address = "10.0.0.2"
	if _, err := entries.Update(vm); err != nil {
		fmt.Println(err)
	}
	if err := entries.Delete("vm1", "default", nil); err != nil {
		fmt.Println(err)
	}
	controller.Drain() // a program would have called go controller.Run(stop)
	// Output:
	// add vm1  → 10.0.0.1
	// update vm1 10.0.0.1 → 10.0.0.2
	// delete vm1  → 10.0.0.2
}

// Any protobuf message can be the spec of a kind, here one without a schema of
// its own. A kind's rules list every violation with the path of its field.
func ExampleSchema() {
	route := configstore.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Route"}
	schemas := configstore.NewSchemasBuilder().MustAdd(configstore.Schema{
		GroupVersionKind: route,
		Aliases:          []string{"v1beta1"},
		Plural:           "routes",
		Spec:             &structpb.Struct{},
		Validate: func(c configstore.Config) (warnings, violations []configstore.Violation) {
			fields := c.Spec.(*structpb.Struct).GetFields()
			if fields["to"].GetStringValue() == "" {
				violations = append(violations, configstore.Violation{Field: "spec.to", Message: "is required"})
			}
			if fields["weight"].GetNumberValue() < 0 {
				violations = append(violations, configstore.Violation{Field: "spec.weight", Message: "must not be negative"})
			}
			return nil, violations
		},
	}).Build().
		Union(istio.Schemas()) // and all of Istio's kinds

	routes := configstore.Typed[*structpb.Struct](memory.Make(schemas), route)
	_, err := routes.Create(configstore.NewConfig("r", "default", &structpb.Struct{
		Fields: map[string]*structpb.Value{"weight": structpb.NewNumberValue(-1)},
	}))
	if invalid, ok := errors.AsType[*configstore.ValidationError](err); ok {
		for _, v := range invalid.Violations {
			fmt.Println(v)
		}
	}
	// Output:
	// spec.to: is required
	// spec.weight: must not be negative
}
