// SPDX-License-Identifier: Apache-2.0

package main

// racing says which tests of a package the race detector sees. The zero value: all.
type racing struct {
	only   string // these and no others, where most of a package is pure functions
	except string // all but these: models and records, which take long and use few goroutines
}

// plain reports whether some tests of the package run without the race detector.
func (r racing) plain() bool { return r != racing{} }

// flags returns the flags of go test that select the tests with the race detector, and the flags
// for the other tests.
func (r racing) flags() (race, plain []string) {
	switch {
	case r.only != "":
		return []string{"-run=" + r.only}, []string{"-skip=" + r.only}
	case r.except != "":
		return []string{"-skip=" + r.except}, []string{"-run=" + r.except}
	default:
		return nil, nil
	}
}

// raced has the packages of the root module that are tested with the race detector by default: their
// tests start goroutines or lock (TestRaceList). The other modules always are, so that their
// dependencies, such as client-go, are built once.
//
//nolint:gochecknoglobals // a table
var raced = map[string]racing{
	"aggregate":                       {},
	"configstore":                     {},
	"configstore/checkpoint":          {},
	"configstore/file":                {except: "^Test(Many|TenThousand|Memory|Random).*$"},
	"configstore/mcp":                 {},
	"configstore/memory":              {},
	"configstore/storetest":           {only: "^(Example.*)$"},
	"internal/configfeed":             {},
	"internal/keyset":                 {},
	"internal/listing":                {},
	"internal/loglimit":               {},
	"internal/notify":                 {},
	"registry/bridge":                 {},
	"registry/internal/publish":       {},
	"registry/memory":                 {},
	"registry/registrytest":           {only: "^(Example.*)$"},
	"registry/serviceentry":           {except: "^(Test(Model|Allocation|Defect).*|Fuzz.*)$"},
	"xdsupdate":                       {},
	"xdsupdate/ads":                   {except: "^(FuzzRegistries|Test(.*Model.*|.*Histories|HistoryAfter.*|TypesAreCounted|ManyClusters.*|InParts|Codec|Silent.*|DefaultLimits|Floods.*|Answers.*|Large.*|LoweredSizes))$"},
	"xdsupdate/ads/internal/pace":     {},
	"xdsupdate/ads/internal/shared":   {},
	"xdsupdate/authn":                 {},
	"xdsupdate/secrets":               {except: "^(TestAllHang|TestEnvoyAgrees|Fuzz.*)$"},
	"xdsupdate/snapshots":             {},
	"xdsupdate/traffic":               {only: "^Test(Calls|Key|Token|ClientsHavePrefixes|PoliciesInAnyOrder|Panic).*$"},
	"xdsupdate/traffic/internal/memo": {},
	"xdsupdate/traffic/internal/mesh": {},
	"xdsupdate/traffic/route":         {},
	"xdsupdate/xdstest":               {},
}
