// SPDX-License-Identifier: Apache-2.0

// Package explain tells where the endpoints of a ServiceEntry registry come from, why others are
// missing, and whether the registry is correct. It recomputes the registry from the present objects
// in one batch and compares the result with the incremental state. Calls are therefore slow, and
// intended for people and tests.
//
//	fmt.Println(explain.Host(services, "prod", "web.example.com"))
//
// # Concurrency
//
// Every function may be called from any goroutine. A concurrent change may be visible in only a
// part of a result.
package explain
