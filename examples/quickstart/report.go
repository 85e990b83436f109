// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// report writes one line for each object or field that is not served as written, or has no effect,
// with the reason, and one line with a summary of the served objects.
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
		if n > 0 && traffic.WithoutEffect(kind) == "" {
			loaded = append(loaded, fmt.Sprintf("%d %s", n, kind.Kind))
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
