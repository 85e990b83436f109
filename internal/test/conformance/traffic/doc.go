// SPDX-License-Identifier: Apache-2.0

// Package traffic replays scenarios whose outcome was recorded from Istio: what
// sidecars, gateways and gRPC clients are sent for VirtualServices,
// DestinationRules, Gateways and Sidecars. It consists of tests only:
//
//	go test ./internal/test/conformance/traffic
//	go test ./internal/test/conformance/traffic -run 'TestConformanceTraffic/gateway/tcp$' -v
//	go test ./internal/test/conformance/traffic -run 'TestConformanceTraffic/gateway/tcp$' -args -dump
//	PILOTKIT_CONFORMANCE_TRAFFIC=<dir> go test ./internal/test/conformance/traffic
//
// A failure lists, for each step, proxy and section, the resources that are
// missing, those that should not be there, and for those that differ the path of
// each difference with the recorded (-) and our (+) value. The flag -dump
// prints the sections of the last step in the recorded form.
//
// The scenarios are in testdata/conformance/traffic of the module; the environment
// variable names another directory of the same format, which its README.md
// describes, absolute or from the module's root.
//
// # How it works
//
// The system is the real one: a memory config store, the ServiceEntry registry, an
// ads server and the traffic policies. Every proxy of a scenario is a delta ADS
// stream that subscribes as its kind does: Envoys to all clusters (and gateways to
// all listeners), to the assignments of their EDS clusters and to the route
// configurations that their listeners refer to; gRPC clients to the listeners of
// the scenario and on from there. After each step what the client has is brought
// into the recorded form and compared with the recording, and nothing may have been
// sent that the client had already.
//
// TestEnvoys puts real Envoys in the place of sidecars and gateways (package
// envoyproxy), of the newest and the oldest release that is supported and by both
// protocols. An envoyproxy.Adapter gives them addresses and files in place of
// those that the machine does not have, and every secret exists. The listeners of a
// sidecar are made by its host, here as a file. After each step an Envoy has to have
// refused nothing, and to use exactly what it was sent, without a field that is
// deprecated or unknown to it.
//
// The rules of DECISIONS.md are functions named after their rows (t12…). They
// change the recorded or both sides where the recording is not, or not alone,
// right; what they need of the scenario they take from the objects as they are
// after the step.
package traffic
