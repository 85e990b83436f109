// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// ownDirectory holds the corpus of this module.
const ownDirectory = "../../../testdata/conformance/traffic"

// A scenario is a pair of files with one name.
const (
	scenarioSuffix = ".yaml"
	goldenSuffix   = ".golden.json"
)

// scenario is the input of one case: README.md, section 1.
type scenario struct {
	Name        string      `yaml:"name"`
	Description string      `yaml:"description"`
	Options     options     `yaml:"options"`
	Proxies     []proxySpec `yaml:"proxies"`
	Steps       []step      `yaml:"steps"`
}

type options struct {
	MeshConfig   map[string]any `yaml:"meshConfig"`
	MeshNetworks map[string]any `yaml:"meshNetworks"`
	Features     struct {
		FilterGatewayClusterConfig bool `yaml:"filterGatewayClusterConfig"`
	} `yaml:"features"`
}

// The values of proxySpec.Kind.
const (
	kindSidecar = "sidecar"
	kindRouter  = "router"
	kindGRPC    = "grpc"
)

type proxySpec struct {
	Name      string            `yaml:"name"`
	Kind      string            `yaml:"kind"`
	IP        string            `yaml:"ip"`
	Namespace string            `yaml:"namespace"`
	Labels    map[string]string `yaml:"labels"`
	Locality  string            `yaml:"locality"`
	Network   string            `yaml:"network"`
	// Listeners are what a gRPC client asks for.
	Listeners []string `yaml:"listeners"`
}

// step has one action.
type step struct {
	Note   string     `yaml:"note"`
	Apply  *string    `yaml:"apply"`
	Delete *objectRef `yaml:"delete"`
}

type objectRef struct {
	Kind      string `yaml:"kind"`
	Namespace string `yaml:"namespace"`
	Name      string `yaml:"name"`
}

func (r objectRef) String() string { return r.Kind + "/" + r.Namespace + "/" + r.Name }

// loadScenario reads a scenario strictly: what the runner does not know it cannot
// replay.
func loadScenario(file string) (*scenario, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	s := &scenario{}
	if err := dec.Decode(s); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	for i, st := range s.Steps {
		if (st.Apply != nil) == (st.Delete != nil) {
			return nil, fmt.Errorf("%s: step %d must have one action", file, i)
		}
	}
	return s, nil
}

// golden is a recording: README.md, section 2.
type golden struct {
	Steps []recordedStep `json:"steps"`
}

type recordedStep struct {
	Index   int                      `json:"index"`
	Results []result                 `json:"results"`
	Proxies map[string]recordedProxy `json:"proxies"`
}

type result struct {
	Object   string   `json:"object"`
	Outcome  string   `json:"outcome"`
	Messages []string `json:"messages"`
	Warnings []string `json:"warnings"`
	// spec is that of a document of ours.
	spec any
}

// recordedProxy is what a proxy has, by section: the variants of each, any of
// which is right.
type recordedProxy map[section][]resources

// UnmarshalJSON reads a proxy. "same" leaves a section out: see resolve.
func (p *recordedProxy) UnmarshalJSON(data []byte) error {
	var raw map[section]json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil {
		return err
	}
	var alternatives map[section][]resources
	if a, ok := raw["alternatives"]; ok {
		if err := json.Unmarshal(a, &alternatives); err != nil {
			return err
		}
	}
	delete(raw, "alternatives")
	*p = make(recordedProxy)
	for s, list := range raw {
		if !slices.Contains(sections, s) {
			return fmt.Errorf("unknown section %q", s)
		}
		if string(list) == `"same"` {
			(*p)[s] = nil
			continue
		}
		var one resources
		if err := json.Unmarshal(list, &one); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
		(*p)[s] = append([]resources{one}, alternatives[s]...)
	}
	return nil
}

// loadGolden reads a recording and puts in place of "same" what is the same.
func loadGolden(file string) (*golden, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	g := &golden{}
	if err := json.Unmarshal(data, g); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	for i, st := range g.Steps {
		for name, p := range st.Proxies {
			for s, variants := range p {
				if variants != nil {
					continue
				}
				if i == 0 {
					return nil, fmt.Errorf("%s: nothing for %s of %s to be the same as", file, s, name)
				}
				p[s] = g.Steps[i-1].Proxies[name][s]
			}
		}
	}
	return g, nil
}

// scenarioNames returns the scenarios below a directory as "topic/name", sorted. A
// corpus may have folders above its topics, and dir may be a link to it.
func scenarioNames(dir string) ([]string, error) {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		base, found := strings.CutSuffix(path, scenarioSuffix)
		if err != nil || e.IsDir() || !found {
			return err
		}
		rel, err := filepath.Rel(dir, base)
		names = append(names, filepath.ToSlash(rel))
		return err
	})
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	if len(names) == 0 {
		return nil, fmt.Errorf("no scenarios in %s", dir)
	}
	return names, nil
}
