// SPDX-License-Identifier: Apache-2.0

// Package realenvoy sends real traffic through real Envoys that are configured by
// this library. It consists of tests only. Each of them runs a control plane in its
// own process, Envoys as package envoyproxy finds and starts them, by both protocols
// of xDS where they could differ, and backends on the loopback interface.
//
//	go test ./internal/test/realenvoy
//
// Where there is no Envoy the tests are skipped with the reason: see package
// envoyproxy.
package realenvoy
