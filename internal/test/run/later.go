// SPDX-License-Identifier: Apache-2.0

package main

import "slices"

// later has the packages whose tests all are left out of the lower tiers, which do not build them.
//
//nolint:gochecknoglobals // a table
var later = map[string]struct {
	tier tier
	what string // the tests
}{
	"internal/test/gatewayconformance": {full, "the conformance suite of the Gateway API"},
	"internal/test/realclients":        {byDefault, "traffic of real clients"},
	"internal/test/realenvoy":          {byDefault, "real Envoys"},
	"internal/test/realservers":        {byDefault, "traffic of real servers"},
}

// tested returns the packages that the tier tests, and reports the others as skipped.
func (o options) tested(packages []pkg, r *report) []pkg {
	return slices.DeleteFunc(packages, func(p pkg) bool {
		rule, found := later[p.dir]
		switch {
		case !found, o.tier == full, o.tier == rule.tier:
			return false
		case rule.tier == full:
			r.skip("only with -full: "+rule.what, p.dir)
		default:
			r.skip("not with -short: "+rule.what, p.dir)
		}
		return true
	})
}
