// SPDX-License-Identifier: Apache-2.0

package serviceentry_test

import (
	"fmt"
	"time"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/serviceentry"
	"github.com/pilotkit/pilotkit/registry/serviceentry/explain"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// A ServiceEntry that selects WorkloadEntries by label: what the updater is called with,
// and why an endpoint is there or not.
func Example() {
	store := memory.Make(istio.Schemas())
	configs := memory.NewController(store)
	updater := &xdstest.Recorder{}
	services := serviceentry.New(configs, updater, serviceentry.Options{ClusterID: "c1"})

	entry := configstore.NewConfig("web", "prod", &networking.ServiceEntry{
		Hosts:            []string{"web.example.com"},
		Ports:            []*networking.ServicePort{{Number: 80, Name: "http", Protocol: "HTTP"}},
		Resolution:       networking.ServiceEntry_STATIC,
		WorkloadSelector: &networking.WorkloadSelector{Labels: map[string]string{"app": "web"}},
	})
	entry.CreationTimestamp = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	workloads := configstore.Typed[*networking.WorkloadEntry](store)
	_, errEntry := configstore.Typed[*networking.ServiceEntry](store).Create(entry)
	_, errOne := workloads.Create(configstore.NewConfig("vm-1", "prod", &networking.WorkloadEntry{
		Address: "10.0.0.1", Labels: map[string]string{"app": "web"}, Ports: map[string]uint32{"http": 8080},
	}))
	_, errTwo := workloads.Create(configstore.NewConfig("vm-2", "prod", &networking.WorkloadEntry{
		Address: "10.0.0.2", Labels: map[string]string{"app": "db"},
	}))
	fmt.Println(errEntry, errOne, errTwo)

	configs.Drain() // a program calls configs.Run(stop)
	for _, call := range updater.Take() {
		fmt.Println(call)
	}
	fmt.Println(explain.Host(services, "prod", "web.example.com"))
	fmt.Println(explain.Workload(services, registry.WorkloadKey{Kind: registry.WorkloadEntry, Namespace: "prod", Name: "vm-2"}))
	// Output:
	// <nil> <nil> <nil>
	// SvcUpdate External/c1 prod/web.example.com add
	// EDSUpdate External/c1 prod/web.example.com [10.0.0.1:8080/http]
	// ConfigUpdate full push of ServiceEntry/prod/web.example.com (service 1)
	// ProxyUpdate c1 10.0.0.1
	// ProxyUpdate c1 10.0.0.2
	// web.example.com in namespace prod
	//   ServiceEntry web, resolution ClientSide, addresses 0.0.0.0, selects {app=web}
	//     10.0.0.1:8080 for port http (80) from WorkloadEntry prod/vm-1 of cluster c1
	//
	// WorkloadEntry prod/vm-2 of cluster c1, address 10.0.0.2, labels {app=db,topology.istio.io/cluster=c1}
	//   ServiceEntry prod/web (web.example.com) does not select it: the workload lacks labels: app=web
}
