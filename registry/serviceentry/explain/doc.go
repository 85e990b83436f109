// SPDX-License-Identifier: Apache-2.0

// Package explain says where the endpoints of a ServiceEntry registry come from,
// why others do not, and whether the registry is right. Its answers are computed
// from the stores, by rules that are written here a second time and in the
// plainest way: they share the conversion of single objects with the registry, and
// nothing else. So they are slow, and meant for people and tests.
//
//	fmt.Println(explain.Host(services, "prod", "web.example.com"))
//
// # Concurrency
//
// Every function may be called from any goroutine. Changes that are under way may
// be in one part of an answer and not in another.
package explain
