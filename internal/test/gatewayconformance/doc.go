// SPDX-License-Identifier: Apache-2.0

// Package gatewayconformance runs the Gateway API project's own conformance suite
// against this repository: configstore/kube/gatewayapi over a real API server
// (internal/test/kubetest), and real Envoys (internal/test/envoyproxy) as data plane.
//
// There is no kubelet and no controller manager. A small node of the tests therefore makes Pods and
// EndpointSlices of the suite's Deployments and Services, runs the suite's own echo servers in
// them, and serves their logs. Each Pod has a network namespace of its own, attached to a bridge,
// as in a cluster; so has each Envoy of a Gateway, which the Infrastructure of the tests starts.
// The bridge is in another network namespace, where the test executes itself again, so that nothing
// of it is visible outside.
//
//	go test ./...                                              the whole suite
//	go test -run 'TestConformance/HTTPRouteWeight' -v ./...    one test of it
//	go test -run TestEndToEnd ./...                            changes under load: no request fails
//	go test -run 'TestConformance$' -update ./...              writes docs/gateway-api.md and the report
//	go test -run 'TestConformance$' -envoy oldest -sotw ./...  with the oldest Envoy, by SotW and not by delta
//
// The test needs Linux, root or the right to make user namespaces, Envoy, and an API
// server that can be built; without them it is skipped with the reason. A run of the whole
// suite ends by comparing its results with docs/gateway-api.md and
// testdata/report.yaml, in the suite's own format, which must be true.
//
// It is an unreleased module of its own, so that the requirements of the suite are in no user's
// module graph.
package gatewayconformance
