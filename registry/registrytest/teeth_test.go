// SPDX-License-Identifier: Apache-2.0

package registrytest_test

import (
	"testing"

	"github.com/pilotkit/pilotkit/registry/registrytest"
)

func TestUnbrokenPasses(t *testing.T) { registrytest.TestInstance(t, factory("")) }

// teeth has broken registries for each check.
func teeth() map[string][]string {
	return map[string][]string{
		"Reads/Empty":           {"an empty registry has a service", "everybody is known"},
		"Reads/Services":        {"lists are not sorted", "reads lag"},
		"Reads/GetService":      {"the youngest wins", "services cannot go"},
		"Reads/GetService/Tie":  {"the object name decides", "the last one wins"},
		"Reads/InstancesByPort": {"ports are ignored", "instances are not sorted"},
		"Reads/Update":          {"endpoints cannot go", "reads lag"},
		"Reads/Remove":          {"services cannot go"},
		"Reads/Immutable":       {"lists change in place"},
		"Snapshot/Agrees":       {"snapshots lag"},
		"Snapshot/Same":         {"snapshots are made each time"},
		"Snapshot/Changed":      {"services are made anew"},
		"Snapshot/Immutable":    {"snapshots change"},
		"Snapshot/Fresh":        {"snapshots lag"},
		"Proxy/Instances":       {"the first address only", "the namespace is required"},
		"Proxy/Namespace":       {"the namespace is ignored"},
		"Proxy/Follows":         {"addresses stay"},
		"Events/Add":            {"adds have a prev", "events are repeated", "curr is a stranger"},
		"Events/Update":         {"updates have no prev"},
		"Events/Delete":         {"deletes have a prev", "deletes are dropped"},
		"Events/Nothing":        {"equal services are updates"},
		"Events/Order":          {"deletes are dropped", "events are repeated"},
		"Events/Fresh":          {"reads lag"},
		"Events/Whole":          {"endpoints come later"},
		"Handlers/Replay":       {"no replay"},
		"Handlers/Order":        {"handlers run in reverse"},
		"Handlers/CallBack":     {"handlers run under the lock"},
		"Handlers/Block":        {"readers take the lock held by handlers"},
		"Handlers/OneAtATime":   {"handlers run at once"},
		"Handlers/Panic":        {"panics pass", "the first panic is the last call"},
		"Subscribe/Replay":      {"no replay", "no replay to subscribers", "no replay of workloads to subscribers"},
		"Subscribe/Cancel":      {"cancel does nothing"},
		"Workloads/Events":      {"workload updates are adds", "events are repeated"},
		"Workloads/Nothing":     {"equal workloads are updates"},
		"Workloads/Replay":      {"no replay"},
		"Workloads/CallBack":    {"handlers run under the lock"},
		"Gateways/Read":         {"gateways are not sorted", "accounts of gateways are not sorted"},
		"Gateways/Handler":      {"gateway handlers are called for services"},
		"Identity":              {"no provider"},
		"HasSynced":             {"never synced"},
		"Run/Stop":              {"run returns at once", "run is deaf"},
		"Run/Twice":             {"run twice is fine"},
		"History":               {"deletes are dropped", "addresses stay", "equal services are updates"},
	}
}

func TestEveryBrokenPromiseIsFound(t *testing.T) { registrytest.ExpectTeeth(t, teeth(), factory) }
