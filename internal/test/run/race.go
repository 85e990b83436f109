// SPDX-License-Identifier: Apache-2.0

package main

// allTests says that the race detector sees all tests of a package.
const allTests = ""

// raced has the packages whose tests the race detector sees by default: those that start
// goroutines or lock (TestRaceList). A pattern restricts it to the tests in which goroutines
// meet, where most of a package is pure functions.
//
//nolint:gochecknoglobals // a table
var raced = map[string]string{
	"aggregate":                               allTests,
	"configstore/checkpoint":                  allTests,
	"configstore/etcd":                        allTests,
	"configstore/file":                        allTests,
	"configstore/kube":                        allTests,
	"configstore/kube/gatewayapi":             "^(Example.*|Test.*(Run|Stop|Panic|Feed|Drain).*)$",
	"configstore/kube/gatewayapi/cluster":     allTests,
	"configstore/kube/gatewayapi/credentials": allTests,
	"configstore/kube/ingress":                allTests,
	"configstore/kube/internal/follow":        allTests,
	"configstore/mcp":                         allTests,
	"configstore/memory":                      allTests,
	"configstore/storetest":                   "^(Example.*)$", // the stores' own tests run the suite
	"internal/configfeed":                     allTests,
	"internal/keyset":                         allTests,
	"internal/listing":                        allTests,
	"internal/loglimit":                       allTests,
	"internal/notify":                         allTests,
	"registry/bridge":                         allTests,
	"registry/internal/publish":               allTests,
	"registry/kube":                           allTests,
	"registry/kube/internal/reach":            allTests,
	"registry/kube/multicluster":              allTests,
	"registry/memory":                         allTests,
	"registry/registrytest":                   "^(Example.*)$", // the registries' own tests run the suite
	"registry/serviceentry":                   allTests,
	"xdsupdate":                               allTests,
	"xdsupdate/ads":                           allTests,
	"xdsupdate/ads/internal/pace":             allTests,
	"xdsupdate/ads/internal/shared":           allTests,
	"xdsupdate/authn":                         allTests,
	"xdsupdate/secrets":                       allTests,
	"xdsupdate/traffic":                       "^Test(Calls|Key|Token|ClientsHavePrefixes|PoliciesInAnyOrder|Panic).*$",
	"xdsupdate/xdstest":                       allTests,
}
