// SPDX-License-Identifier: Apache-2.0

// Package mosn sends real traffic through a gateway that is configured by this
// library. It consists of tests only, and of the proxy that they build:
// testdata/proxy, MOSN 1.3.0, which takes Envoy's listeners, routes, clusters and
// endpoints over ADS. Without the modules that it is built of, or with -short, the
// tests are skipped, and TestPrerequisites says why; with PILOTKIT_REQUIRE_CLIENTS in
// the environment they fail instead.
//
// # What it proves, and what it does not
//
// Connections and requests come to the listeners that Gateways ask for and go where
// VirtualServices say, over TCP, HTTP and TLS with client certificates, and none is
// lost while endpoints leave under load.
//
// MOSN is not Envoy. It refuses nothing, has one filter chain for each listener, does
// not choose by server name, sends HTTPS redirects to HTTP, ignores health and
// priorities, and matches headers by their old form only. So which filter chain a
// connection gets, server names, redirects and priorities were checked by what Istio
// sends, by the rules of Envoy's types and by simulation, and never on Envoy. It also
// has its secrets from a server of their own, not over ADS: the tests put those of
// xdsupdate/secrets into the listeners that it is sent.
package mosn
