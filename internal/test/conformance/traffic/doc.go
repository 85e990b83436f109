// SPDX-License-Identifier: Apache-2.0

// Package traffic replays scenarios whose outcome was recorded from Istio: the resources that
// sidecars, gateways and gRPC clients get for VirtualServices, DestinationRules, Gateways and
// Sidecars. It consists of tests only:
//
//	go test ./internal/test/conformance/traffic
//	go test ./internal/test/conformance/traffic -run 'TestConformanceTraffic/gateway/tcp$' -v
//	go test ./internal/test/conformance/traffic -run 'TestConformanceTraffic/gateway/tcp$' -args -dump
//	PILOTKIT_CONFORMANCE_TRAFFIC=<dir> go test ./internal/test/conformance/traffic
//
// A failure lists, for each step, proxy and section, the missing resources, the unexpected ones
// and, for each resource that differs, the path of each difference with the recorded (-) and our
// (+) value. The flag -dump prints the sections of the last step in the recorded form.
//
// The scenarios are in testdata/conformance/traffic of the module; the environment
// variable names another directory of the same format, which its README.md
// describes, absolute or from the module's root.
//
// # How it works
//
// The system under test is the real one: a memory config store, the ServiceEntry registry, an ads
// server and the traffic policies. Every proxy of a scenario is a delta ADS stream that subscribes
// as its kind does: Envoys to all clusters (and gateways to all listeners), to the assignments of
// their EDS clusters and to the route configurations that their listeners reference; gRPC clients
// to the listeners of the scenario, and from there on. After each step the client's resources are
// converted to the recorded form and compared with the recording, and no resource may have been
// sent twice without a change.
//
// After each step routers (xdsupdate/traffic/route) decide about calls by the same resources, as
// package routesim predicts.
//
// TestEnvoys replaces sidecars and gateways by real Envoys (package envoyproxy), of the newest and
// the oldest supported release and by both protocols. An envoyproxy.Adapter substitutes addresses
// and files that the machine does not have, and every secret exists. The listeners of a sidecar are
// made by its host, in this case as a file. After each step an Envoy must have rejected nothing,
// and must use exactly the resources that it was sent, without a deprecated or unknown field.
//
// The rules of DECISIONS.md are functions named after their rows (t12…). They change the recorded
// side, or both, where the recording is wrong or allows alternatives. They take the data that they
// need from the scenario's objects after the step.
package traffic
