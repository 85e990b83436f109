// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// settings are the flags.
type settings struct {
	// listen and admin are the addresses of xDS and of HTTP.
	listen, admin string

	// dir is a directory of manifests, etcd the endpoints of etcd, separated by commas, mcpFrom the
	// address of another control plane, and kubeconfig the file with the access to a cluster. Each
	// is a source; "" disables it.
	dir, etcd, etcdPrefix, mcpFrom, kubeconfig string
	// cluster, domain and revision belong to kubeconfig's cluster.
	cluster, domain, revision string
	// checkpoint is the file that stores the configs for a start without sources; "" disables it.
	checkpoint string

	// cert, key and clientCA are files; "" serves without TLS. trustDomain is the trust domain of
	// the clients' identities. operators is the namespace of the clients that may use CSDS.
	cert, key, clientCA, trustDomain, operators string
	// controlPlanes lists the identities of the clients that may receive all configs, separated by
	// commas.
	controlPlanes string

	// drain is the time that the program continues to serve after it has become unready, and
	// patience the time that each part has to stop after that.
	drain, patience time.Duration
}

// configFlag is the name of the flag for the file with values of the other flags.
const configFlag = "config"

// flags returns the flags of settings, with their defaults set.
func (s *settings) flags() *flag.FlagSet {
	f := flag.NewFlagSet("discovery", flag.ContinueOnError)
	f.String(configFlag, "", "YAML `file` with values of other flags, by name; flags that are given count more")
	f.StringVar(&s.listen, "listen", "127.0.0.1:15010", "`address` to serve xDS and MCP on")
	f.StringVar(&s.admin, "admin", "127.0.0.1:8080", "`address` of /ready, /live, /metrics and /debug/; keep it to yourself")
	f.StringVar(&s.dir, "dir", "", "`directory` of manifests to read configs from")
	f.StringVar(&s.etcd, "etcd", "", "`endpoints` of etcd to read configs from, separated by commas")
	f.StringVar(&s.etcdPrefix, "etcd-prefix", "/pilotkit", "`prefix` of the keys in etcd")
	f.StringVar(&s.mcpFrom, "mcp-from", "", "`address` of a control plane to read configs from by MCP")
	f.StringVar(&s.kubeconfig, "kubeconfig", "", "`file` that says how to reach a Kubernetes cluster to read configs and services from")
	f.StringVar(&s.cluster, "cluster", "Kubernetes", "`name` of that cluster")
	f.StringVar(&s.domain, "domain", "cluster.local", "`suffix` of that cluster's host names")
	f.StringVar(&s.revision, "revision", "", "read the objects of this istio.io/rev `revision` from it and by MCP, and those without one")
	f.StringVar(&s.checkpoint, "checkpoint", "", "`file` that keeps the configs, for a start while sources are down")
	f.StringVar(&s.cert, "tls-cert", "", "`file` with the certificate of the xDS port; it is read again when it changes")
	f.StringVar(&s.key, "tls-key", "", "`file` with its key")
	f.StringVar(&s.clientCA, "tls-client-ca", "", "`file` with the authorities of the clients' certificates")
	f.StringVar(&s.trustDomain, "trust-domain", "cluster.local", "trust `domain` of the clients' identities")
	f.StringVar(&s.operators, "operators", "istio-system", "`namespace` of the clients that may ask by CSDS what proxies have")
	f.StringVar(&s.controlPlanes, "control-planes", "", "`identities` (SPIFFE IDs) of the control planes that may have all configs by MCP, separated by commas")
	f.DurationVar(&s.drain, "drain", time.Second, "`time` to serve after the program has said that it is not ready any more")
	f.DurationVar(&s.patience, "patience", 5*time.Second, "`time` that each part has to stop")
	return f
}

// controlPlaneIDs returns the identities of the clients that may receive all configs; none without
// TLS.
func (s *settings) controlPlaneIDs() []string {
	return strings.FieldsFunc(s.controlPlanes, func(r rune) bool { return r == ',' })
}

// parse returns the settings from the arguments, or the help text if they ask for it.
func parse(args []string) (s *settings, help string, err error) {
	s = &settings{}
	f := s.flags()
	var out bytes.Buffer
	f.SetOutput(&out)
	err = f.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return nil, out.String(), nil
	case err != nil:
		return nil, "", err
	case f.NArg() > 0:
		return nil, "", fmt.Errorf("unknown argument %q; -h shows what there is", f.Arg(0))
	}
	if err := readFile(f); err != nil {
		return nil, "", err
	}
	return s, "", s.check()
}

// readFile sets the flags in the file that were not given as arguments.
func readFile(f *flag.FlagSet) error {
	path := f.Lookup(configFlag).Value.String()
	if path == "" {
		return nil
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("-%s: %w", configFlag, err)
	}
	var values map[string]any
	if err := yaml.UnmarshalStrict(content, &values); err != nil {
		return fmt.Errorf("-%s: %s: %w", configFlag, path, err)
	}
	given := map[string]bool{configFlag: true}
	f.Visit(func(f *flag.Flag) { given[f.Name] = true })
	for name, value := range values {
		if f.Lookup(name) == nil || name == configFlag {
			return fmt.Errorf("-%s: %s: there is no flag %q", configFlag, path, name)
		}
		text, ok := value.(string)
		if !ok {
			return fmt.Errorf("-%s: %s: %s: must be a text", configFlag, path, name)
		}
		if given[name] {
			continue
		}
		if err := f.Set(name, text); err != nil {
			return fmt.Errorf("-%s: %s: %s: %w", configFlag, path, name, err)
		}
	}
	return nil
}

// check returns an error for an invalid combination of flags.
func (s *settings) check() error {
	switch tls := []string{s.cert, s.key, s.clientCA}; {
	case s.dir+s.etcd+s.mcpFrom+s.kubeconfig == "":
		return errors.New("no source: give -dir, -etcd, -mcp-from or -kubeconfig")
	case slices.Contains(tls, "") && strings.Join(tls, "") != "":
		return errors.New("-tls-cert, -tls-key and -tls-client-ca belong together")
	case s.controlPlanes != "" && s.cert == "":
		return errors.New("-control-planes are known by their certificates: give -tls-cert, -tls-key and -tls-client-ca")
	case s.drain < 0 || s.patience <= 0:
		return fmt.Errorf("-drain must not be negative, and -patience be positive, are %v and %v", s.drain, s.patience)
	}
	return nil
}
