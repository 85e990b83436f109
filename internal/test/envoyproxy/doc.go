// SPDX-License-Identifier: Apache-2.0

// Package envoyproxy runs real Envoys for tests: it finds the installed releases,
// starts one with a bootstrap, waits for it, reads its administration pages, and
// ends it with the test.
//
//	proxy := envoyproxy.Start(t, envoyproxy.Options{
//		Node: envoyproxy.Node{Kind: "router", Name: "edge", Namespace: "ingress", Labels: map[string]string{"app": "edge"}},
//		Server: address, // of an ADS server
//	})
//	proxy.AwaitReady()
//	if refused := proxy.Refused(); len(refused) > 0 { … }
//
// # Where Envoys are found
//
// The first of these that names any:
//
//   - the environment variable PILOTKIT_ENVOY: paths of programs, separated as in PATH;
//   - .cache/envoy/envoy-VERSION below the root of the repository, where .ci/run
//     installs the newest and the oldest release that is supported;
//   - envoy on the PATH.
//
// Without an Envoy, and with -short, tests are skipped with the reason; with
// PILOTKIT_REQUIRE_CLIENTS in the environment they fail instead where there is none.
package envoyproxy
