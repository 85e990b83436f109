// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
)

// served returns the kinds that the pipeline turns into resources. Other kinds are read and stored
// for generators, but this program has none.
func served() []configstore.GroupVersionKind {
	return []configstore.GroupVersionKind{
		istio.ServiceEntry, istio.WorkloadEntry,
		istio.VirtualService, istio.DestinationRule, istio.Gateway, istio.Sidecar,
		istio.AuthorizationPolicy, istio.PeerAuthentication, istio.RequestAuthentication,
	}
}

// report lists the parts of the directory that are not served as written, or have no effect, with
// the reason, one line for each object, field or kind. It summarizes the served objects in one
// line.
func (p *pipeline) report(out io.Writer) {
	r := p.files.Report()
	for _, e := range r.Errors {
		fmt.Fprintf(out, "  rejected  %v\n", e)
	}
	for _, e := range r.Warnings {
		fmt.Fprintf(out, "  warning   %v\n", e)
	}
	for _, e := range p.policies.Ineffective() {
		fmt.Fprintf(out, "  no effect %v\n", e)
	}
	var loaded []string
	for _, schema := range p.store.Schemas().All() {
		kind := schema.GroupVersionKind
		n := len(p.store.List(kind, configstore.NamespaceAll))
		switch {
		case n == 0:
		case slices.Contains(served(), kind):
			loaded = append(loaded, fmt.Sprintf("%d %s", n, kind.Kind))
		default:
			fmt.Fprintf(out, "  %s: loaded, not served by this program\n", kind.Kind)
		}
	}
	if len(loaded) == 0 {
		loaded = []string{"nothing"}
	}
	fmt.Fprintf(out, "  serving   %s", strings.Join(loaded, ", "))
	if r.Foreign+r.Other > 0 {
		fmt.Fprintf(out, "; passed over %d objects of other kinds and %d documents that are no objects", r.Foreign, r.Other)
	}
	fmt.Fprintln(out)
}
