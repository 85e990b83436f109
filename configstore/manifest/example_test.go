// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"errors"
	"fmt"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/manifest"
)

func ExampleParse() {
	input := []byte(`apiVersion: networking.istio.io/v1beta1
kind: WorkloadEntry
metadata: {name: vm-1}
spec:
  address: 10.0.0.1
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
---
apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: {name: vm-2}
spec:
  addrezz: 10.0.0.2
  weight: many
`)
	for _, doc := range manifest.Parse(istio.Schemas(), input, manifest.Options{DefaultNamespace: "default"}) {
		switch {
		case errors.Is(doc.Err, configstore.ErrUnknownKind):
			fmt.Println("skipped:", doc.Key.Object())
		case doc.Err != nil:
			fmt.Println(doc.Err)
		default:
			fmt.Println(doc.Config.GroupVersionKind, doc.Config.Name)
		}
	}
	// Output:
	// networking.istio.io/v1/WorkloadEntry vm-1
	// skipped: Deployment web
	// document 3, WorkloadEntry default/vm-2: line 15, column 3: spec.addrezz: unknown field; line 16, column 11: spec.weight: must be an integer from 0 to 4294967295, is "many"
}

func ExampleMarshal() {
	configs, err := manifest.ParseAll(istio.Schemas(), []byte(
		`{"kind": "WorkloadEntry", "apiVersion": "networking.istio.io/v1", "metadata": {"name": "vm-1", "labels": {"on": "yes"}},
		  "spec": {"address": "10.0.0.1", "ports": {"http": 8080}}}`), manifest.Options{})
	if err != nil {
		panic(err)
	}
	text, err := manifest.Marshal(configs[0])
	if err != nil {
		panic(err)
	}
	fmt.Print(string(text))
	// Output:
	// apiVersion: networking.istio.io/v1
	// kind: WorkloadEntry
	// metadata:
	//   labels:
	//     "on": "yes"
	//   name: vm-1
	// spec:
	//   address: 10.0.0.1
	//   ports:
	//     http: 8080
}
