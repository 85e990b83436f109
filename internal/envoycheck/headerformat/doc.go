// SPDX-License-Identifier: Apache-2.0

// Package headerformat checks Envoy's format of the header values that a route sets or adds:
// %COMMAND(ARGUMENT):LENGTH% stands for a property of the request, and %% for a percent sign.
//
//	if err := headerformat.Check("%REQ(:path)% of %HOSTNAME%"); err != nil {
//		return err // e.g. "%FOO%: Not supported field in StreamInfo: FOO"
//	}
//
// Envoy rejects the whole route configuration because of one invalid value. Check accepts only
// values that all supported releases, 1.36 to 1.40, accept; a test compares it with these releases.
// It also rejects a few values that they accept:
//
//   - the command ENVIRONMENT, which reads the environment of the proxy's process, because authors
//     of routes must not see it;
//   - commands and arguments that only the newer releases know;
//   - CEL expressions other than one attribute, such as %CEL(request.headers['x-user'])%, because
//     checking them would take Envoy's parser;
//   - JSON lists, the obsolete arguments of %UPSTREAM_METADATA% and %DYNAMIC_METADATA%, with ")" or
//     "%" in a name.
//
// # Concurrency
//
// Check is a pure function.
package headerformat
