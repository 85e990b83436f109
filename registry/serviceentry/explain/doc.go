// SPDX-License-Identifier: Apache-2.0

// Package explain says where the endpoints of a ServiceEntry registry come from,
// why others do not, and whether the registry is right. Its answers come from a
// registry that is made anew of what is in the stores: what many changes, one after
// the other, have led to is compared with what one batch leads to. So they are slow,
// and meant for people and tests.
//
//	fmt.Println(explain.Host(services, "prod", "web.example.com"))
//
// # Concurrency
//
// Every function may be called from any goroutine. Changes that are under way may
// be in one part of an answer and not in another.
package explain
