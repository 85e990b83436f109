// SPDX-License-Identifier: Apache-2.0

// Package headerformat knows the language in which Envoy takes the values of headers
// that a route sets or adds: text in which %COMMAND(ARGUMENT):LENGTH% stands for a
// property of the request, and %% for a percent sign.
//
//	if err := headerformat.Check("%REQ(:path)% of %HOSTNAME%"); err != nil {
//		return err // e.g. "%FOO%: Not supported field in StreamInfo: FOO"
//	}
//
// Envoy refuses the whole route configuration over one bad value. Check accepts only
// what all of the supported releases, 1.36 to 1.40, accept: a test asks them. It also
// refuses a few texts that they accept:
//
//   - the command ENVIRONMENT, which reads the environment of the proxy's process: who writes a route must not see what
//     that was started with;
//   - commands and arguments that only the newer releases know;
//   - CEL expressions that nest deep, build messages, or have the largest numbers: how
//     deep Envoy finds them, and which messages it has, would take its parser;
//   - lists in JSON, the obsolete arguments of %UPSTREAM_METADATA% and
//     %DYNAMIC_METADATA%, with ")" or "%" in a name.
//
// # Concurrency
//
// Check is a pure function.
package headerformat
