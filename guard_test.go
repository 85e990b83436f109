// SPDX-License-Identifier: Apache-2.0

package pilotkit_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/build"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pilotkit/pilotkit/internal/test/tier"
)

const module = "github.com/pilotkit/pilotkit"

// pkg is what go list tells of a package.
type pkg struct {
	ImportPath   string
	Name         string
	Imports      []string
	TestImports  []string
	XTestImports []string
	Standard     bool
	Module       *struct{ Path string }
}

func goList(t *testing.T, args ...string) []pkg {
	t.Helper()
	out := run(t, append([]string{"list", "-json=ImportPath,Name,Imports,TestImports,XTestImports,Standard,Module"}, args...)...)
	var pkgs []pkg
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		switch err := d.Decode(&p); {
		case errors.Is(err, io.EOF):
			return pkgs
		case err != nil:
			t.Fatalf("go list: %v", err)
		}
		pkgs = append(pkgs, p)
	}
}

func run(t *testing.T, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return out
}

// allowed lists, for each package, which of our packages its non-test code may
// import.
var allowed = map[string][]string{
	"":                             {},
	"configstore":                  {},
	"configstore/istio":            {"configstore"},
	"configstore/manifest":         {"configstore"},
	"configstore/memory":           {"configstore", "configstore/internal/rules"},
	"configstore/file":             {"configstore", "configstore/manifest", "configstore/internal/commit"},
	"configstore/internal/commit":  {"configstore"},
	"configstore/internal/reading": {"configstore"},
	"configstore/internal/rules":   {"configstore"},
	"configstore/storetest":        {"configstore"},
	"configstore/checkpoint":       {"configstore", "configstore/memory", "configstore/internal/commit", "configstore/internal/reading"},
	"configstore/mcp":              {"configstore", "configstore/internal/commit", "registry", "xdsupdate", "xdsupdate/ads"},
	"registry":                     {"configstore"},
	"registry/registrytest":        {"configstore", "registry"},
	"xdsupdate":                    {"configstore", "configstore/istio", "registry"},
	"xdsupdate/xdstest":            {"configstore", "registry", "xdsupdate"},
	"xdsupdate/envoy":              {"registry"},
	"xdsupdate/ads": {
		"configstore", "configstore/istio", "registry", "xdsupdate", "xdsupdate/envoy", "xdsupdate/ads/internal/acks",
		"xdsupdate/ads/internal/difference",
		"xdsupdate/ads/internal/failure", "xdsupdate/ads/internal/index",
		"xdsupdate/ads/internal/pace", "xdsupdate/ads/internal/reference", "xdsupdate/ads/internal/resource",
		"xdsupdate/ads/internal/sequence", "xdsupdate/ads/internal/services", "xdsupdate/ads/internal/shared", "xdsupdate/ads/internal/trial", "xdsupdate/ads/internal/wire",
	},
	"xdsupdate/ads/internal/index":     {},
	"xdsupdate/ads/internal/shared":    {"xdsupdate/ads/internal/resource"},
	"xdsupdate/ads/internal/pace":      {},
	"xdsupdate/ads/internal/trial":     {},
	"xdsupdate/ads/internal/failure":   {},
	"xdsupdate/ads/internal/reference": {"xdsupdate/envoy"},
	"xdsupdate/ads/internal/resource":  {"xdsupdate/ads/internal/reference"},
	"xdsupdate/ads/internal/wire":      {"xdsupdate/ads/internal/reference", "xdsupdate/ads/internal/resource"},
	"xdsupdate/ads/internal/acks":      {"xdsupdate/ads/internal/reference", "xdsupdate/ads/internal/resource"},
	"xdsupdate/ads/internal/sequence": {
		"xdsupdate/envoy", "xdsupdate/ads/internal/acks", "xdsupdate/ads/internal/difference", "xdsupdate/ads/internal/reference",
		"xdsupdate/ads/internal/resource",
	},
	"xdsupdate/ads/internal/difference": {
		"registry", "xdsupdate/envoy", "xdsupdate/ads/internal/index", "xdsupdate/ads/internal/reference", "xdsupdate/ads/internal/resource",
		"xdsupdate/ads/internal/wire",
	},
	"xdsupdate/ads/internal/services": {
		"registry", "xdsupdate", "xdsupdate/envoy", "xdsupdate/ads/internal/failure", "xdsupdate/ads/internal/resource",
	},
	"xdsupdate/traffic": {
		"configstore", "configstore/istio", "registry", "xdsupdate", "xdsupdate/envoy", "xdsupdate/ads", "xdsupdate/traffic/route",
		"xdsupdate/traffic/internal/hostname", "xdsupdate/traffic/internal/memo", "xdsupdate/traffic/internal/mesh",
		"xdsupdate/traffic/internal/objects", "xdsupdate/traffic/internal/rbac",
	},
	"xdsupdate/traffic/internal/hostname": {"registry"},
	"xdsupdate/traffic/internal/memo":     {},
	"xdsupdate/traffic/internal/mesh": {
		"registry", "xdsupdate", "xdsupdate/ads", "xdsupdate/traffic/internal/hostname", "xdsupdate/traffic/internal/memo",
		"xdsupdate/traffic/internal/objects",
	},
	"xdsupdate/traffic/internal/objects": {
		"configstore", "configstore/istio", "registry", "xdsupdate/traffic/internal/hostname", "xdsupdate/traffic/internal/rbac",
	},
	"xdsupdate/traffic/internal/rbac": {},
	"xdsupdate/traffic/route":         {"configstore/istio", "registry", "xdsupdate/envoy", "xdsupdate/traffic/internal/rbac"},
	"xdsupdate/traffic/meshtest":      {"configstore", "configstore/istio", "registry", "xdsupdate/traffic", "xdsupdate/traffic/route"},
	"xdsupdate/authn":                 {"registry", "xdsupdate/ads"},
	"xdsupdate/csds":                  {"xdsupdate/envoy", "xdsupdate/ads"},
	"xdsupdate/debug": {
		"configstore", "configstore/istio", "configstore/manifest", "registry",
		"registry/serviceentry", "registry/serviceentry/explain", "aggregate", "xdsupdate", "xdsupdate/envoy",
		"xdsupdate/ads", "xdsupdate/traffic",
	},
	"xdsupdate/secrets":         {"configstore", "configstore/istio", "registry", "xdsupdate", "xdsupdate/envoy", "xdsupdate/ads"},
	"xdsupdate/snapshots":       {"configstore", "registry", "xdsupdate", "xdsupdate/ads"},
	"registry/internal/publish": {"registry", "xdsupdate"},
	"registry/memory":           {"configstore", "registry", "xdsupdate", "registry/internal/publish"},
	"registry/serviceentry": {
		"configstore", "configstore/istio", "registry", "xdsupdate", "registry/internal/publish",
		"registry/serviceentry/internal/view",
	},
	"registry/serviceentry/internal/view": {"configstore", "registry"},
	"registry/serviceentry/explain":       {"registry", "registry/serviceentry", "registry/serviceentry/internal/view"},
	"registry/bridge":                     {"configstore", "registry", "xdsupdate", "registry/memory"},
	"aggregate":                           {"configstore", "registry", "xdsupdate"},

	// Internal packages that import others than internal ones.
	"internal/listing":    {"configstore"},
	"internal/configfeed": {"configstore"},
	"internal/configset":  {"configstore"},
	"internal/xdsbuild":   {"registry", "xdsupdate/envoy"},

	// Modules of their own.
	"configstore/etcd": {
		"configstore", "configstore/manifest", "configstore/memory", "configstore/internal/commit", "configstore/internal/reading",
		"configstore/internal/rules",
	},
	"configstore/kube": {
		"configstore", "configstore/manifest", "configstore/memory", "configstore/internal/commit", "configstore/internal/reading", "registry",
		"aggregate", "configstore/kube/internal/boundedlist", "configstore/kube/internal/statuswriter",
	},
	"configstore/kube/ingress": {
		"configstore", "configstore/istio", "aggregate", "configstore/kube", "configstore/kube/internal/follow",
		"configstore/kube/internal/statuswriter",
	},
	"configstore/kube/gatewayapi": {"configstore", "configstore/istio", "configstore/internal/commit", "aggregate"},
	"configstore/kube/gatewayapi/cluster": {
		"configstore", "configstore/kube", "configstore/kube/gatewayapi", "configstore/kube/internal/follow",
		"configstore/kube/internal/statuswriter",
	},
	"configstore/kube/gatewayapi/refusals": {"configstore", "configstore/kube/gatewayapi", "xdsupdate/ads"},
	"configstore/kube/gatewayapi/credentials": {
		"configstore", "configstore/istio", "configstore/kube/gatewayapi", "xdsupdate/envoy", "xdsupdate/secrets",
	},
	"configstore/kube/internal/boundedlist":  {},
	"configstore/kube/internal/follow":       {"configstore/kube/internal/boundedlist"},
	"configstore/kube/internal/statuswriter": {"configstore"},
	"registry/kube": {
		"configstore", "configstore/istio", "registry", "xdsupdate", "registry/internal/publish", "registry/kube/internal/reach",
	},
	"registry/kube/internal/reach": {},
	"registry/kube/multicluster":   {"configstore", "registry", "xdsupdate", "aggregate", "registry/kube", "registry/kube/internal/reach"},
	"xdsupdate/prometheus": {
		"configstore", "xdsupdate", "xdsupdate/envoy", "xdsupdate/ads",
	},
}

// packages returns the packages of all modules of this repository but for those
// below testdata. They are read from their folders, so that nothing else that the
// modules require has to be there.
func packages(t *testing.T) []pkg {
	t.Helper()
	var pkgs []pkg
	if err := filepath.WalkDir(".", func(folder string, entry os.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		if name := entry.Name(); folder != "." && (strings.HasPrefix(name, ".") || name == "testdata" || name == "node_modules") {
			return filepath.SkipDir
		}
		found, err := build.ImportDir(folder, 0)
		if none := (*build.NoGoError)(nil); errors.As(err, &none) {
			return nil
		}
		if err != nil {
			return err
		}
		pkgs = append(pkgs, pkg{ImportPath: path.Join(module, filepath.ToSlash(folder)), Name: found.Name, Imports: found.Imports})
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return pkgs
}

// TestImportDirection keeps the layers of the library apart, in all of its modules:
// a lower one never imports a higher one, and nobody imports an example.
func TestImportDirection(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range packages(t) {
		from := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
		seen[from] = true
		if strings.HasPrefix(from, "examples/") || strings.HasPrefix(from, "internal/test/") || from == "bench" {
			continue
		}
		for _, imported := range p.Imports {
			to, ours := strings.CutPrefix(imported, module+"/")
			if !ours {
				continue
			}
			switch {
			case strings.HasPrefix(to, "internal/test/"):
				if !strings.HasSuffix(from, "test") {
					t.Errorf("%s imports %s, which is for tests", from, to)
				}
			case strings.HasPrefix(from, "internal/"):
				if !strings.HasPrefix(to, "internal/") && !slices.Contains(allowed[from], to) {
					t.Errorf("%s imports %s: internal packages import none but internal ones", from, to)
				}
			case strings.HasPrefix(to, "internal/"):
			default:
				may, known := allowed[from]
				if !known {
					t.Errorf("%s has no place in the layers: add it to the table of this test", from)
				}
				if !slices.Contains(may, to) {
					t.Errorf("%s imports %s, which is not below it", from, to)
				}
			}
		}
	}
	for from := range allowed {
		if !seen[from] {
			t.Errorf("the table of this test has %q, which is no package", from)
		}
	}
}

// heavy are the prefixes of what is not in the core module.
var heavy = []string{"k8s.io/", "sigs.k8s.io/", "istio.io/istio", "istio.io/client-go", "go.etcd.io/"}

// TestNothingHeavy keeps out what modules of their own are for, and Istio's own module, tests
// included.
func TestNothingHeavy(t *testing.T) {
	for _, p := range goList(t, "-deps", "-test", "./...") {
		for _, banned := range heavy {
			if strings.HasPrefix(p.ImportPath, banned) {
				t.Errorf("the library depends on %s", p.ImportPath)
			}
		}
	}
	// Nor are they in the graph, which those who import the library have to resolve.
	for line := range strings.Lines(string(run(t, "mod", "graph"))) {
		_, needed, _ := strings.Cut(strings.TrimSpace(line), " ")
		for _, banned := range heavy {
			if strings.HasPrefix(needed, banned) {
				t.Errorf("the library's graph of modules has %s", needed)
			}
		}
	}
}

// TestModulesAgree requires one version of each dependency in all modules, those of programs that
// only tests build among them. With several, most packages are compiled once for each set of versions.
func TestModulesAgree(t *testing.T) {
	t.Parallel()
	requirement := regexp.MustCompile(`(?m)^(?:require |\t)([^ ]+) (v[^ \n]+)`)
	type required struct{ version, file string }
	first := map[string]required{}
	if err := filepath.WalkDir(".", func(file string, entry os.DirEntry, err error) error {
		switch name := path.Base(file); {
		case err != nil:
			return err
		case entry.IsDir() && (name == "node_modules" || file != "." && strings.HasPrefix(name, ".")):
			return filepath.SkipDir
		case name != "go.mod":
			return nil
		}
		data, err := os.ReadFile(file)
		for _, found := range requirement.FindAllStringSubmatch(string(data), -1) {
			dependency, version := found[1], found[2]
			other, known := first[dependency]
			if !known {
				first[dependency] = required{version, file}
			} else if other.version != version && !strings.HasPrefix(dependency, module) {
				t.Errorf("%s requires %s %s, and %s requires %s", file, dependency, version, other.file, other.version)
			}
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if len(first) < 100 {
		t.Errorf("only %d dependencies were found", len(first))
	}
}

// TestBudget bounds what a program drags in that imports the whole library:
// packages, modules, and the size of its binary without symbols. The figures of
// a program that imports Istio's config store stand beside the budget.
func TestBudget(t *testing.T) {
	data, err := os.ReadFile("testdata/budget.json")
	if err != nil {
		t.Fatal(err)
	}
	var budget struct {
		Pilotkit, Istio struct{ Packages, Modules, BinaryMB int }
	}
	if err := json.Unmarshal(data, &budget); err != nil {
		t.Fatal(err)
	}
	row := fmt.Sprintf("| all of pilotkit | %d | 0 | %d | %d MB |", budget.Pilotkit.Packages, budget.Pilotkit.Modules, budget.Pilotkit.BinaryMB)
	if !strings.Contains(documents(t)["README.md"], row) {
		t.Errorf("README.md does not have the figures of testdata/budget.json: %s", row)
	}
	deps := goList(t, "-deps", "./internal/test/everything")
	modules := map[string]bool{}
	for _, p := range deps {
		if p.Module != nil {
			modules[p.Module.Path] = true
		}
	}
	t.Logf("%d packages, %d modules; with Istio's: %d packages, %d modules", len(deps), len(modules), budget.Istio.Packages, budget.Istio.Modules)
	atMost(t, len(deps), budget.Pilotkit.Packages, "packages")
	atMost(t, len(modules), budget.Pilotkit.Modules, "modules")
	tier.OnlyFull(t, "the size of a binary")
	binary := filepath.Join(t.TempDir(), "everything")
	run(t, "build", "-ldflags=-s -w", "-o", binary, "./internal/test/everything")
	stat, err := os.Stat(binary)
	if err != nil {
		t.Fatal(err)
	}
	megabytes := int((stat.Size() + 1<<20 - 1) >> 20)
	t.Logf("%d MB; with Istio's: %d MB", megabytes, budget.Istio.BinaryMB)
	atMost(t, megabytes, budget.Pilotkit.BinaryMB, "MB of binary")
}

func atMost(t *testing.T, got, most int, what string) {
	t.Helper()
	if got > most {
		t.Errorf("%d %s, more than the %d of testdata/budget.json", got, what, most)
	}
}

// TestEverythingIsEverything keeps the program of TestBudget honest.
func TestEverythingIsEverything(t *testing.T) {
	var imported []string
	for _, p := range goList(t, "./internal/test/everything") {
		imported = p.Imports
	}
	for _, p := range goList(t, "./...") {
		path := strings.TrimPrefix(p.ImportPath, module+"/")
		if p.Name == "main" || p.ImportPath == module || strings.HasPrefix(path, "examples/") || strings.Contains("/"+path, "/internal/") || strings.HasSuffix(path, "test") {
			continue
		}
		if !slices.Contains(imported, p.ImportPath) {
			t.Errorf("internal/test/everything does not import %s", p.ImportPath)
		}
	}
}
