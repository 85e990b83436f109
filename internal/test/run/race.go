// SPDX-License-Identifier: Apache-2.0

package main

// allTests says that the race detector sees all tests of a package.
const allTests = ""

// raced has the packages whose tests the race detector sees by default: those that start
// goroutines, lock or use atomics (TestRaceList). A pattern restricts it to the tests in
// which goroutines meet, where most of a package is pure functions.
//
//nolint:gochecknoglobals // a table
var raced = map[string]string{
	"aggregate":                           allTests,
	"configstore/checkpoint":              allTests,
	"configstore/etcd":                    allTests,
	"configstore/file":                    allTests,
	"configstore/kube":                    allTests,
	"configstore/kube/gatewayapi":         "Concurrent|Run|Race|Stop",
	"configstore/kube/gatewayapi/cluster": allTests,
	"configstore/kube/ingress":            allTests,
	"configstore/mcp":                     allTests,
	"configstore/memory":                  allTests,
	"registry/bridge":                     allTests,
	"registry/kube":                       allTests,
	"registry/kube/multicluster":          allTests,
	"registry/memory":                     allTests,
	"registry/serviceentry":               allTests,
	"xdsupdate":                           allTests,
	"xdsupdate/ads":                       allTests,
}
