// SPDX-License-Identifier: Apache-2.0

// Package ptrtable has a hash table of pointers that does not keep the keys: it reads
// them through the pointers. It is for indexes of a million objects that exist anyway
// and contain their key.
//
// # Why not a map
//
// `go test -run '^$' -bench . ./internal/ptrtable`, 100,000 objects with a key of two
// strings; limit: a Go map, whose readers would need a lock:
//
//	           | Get    | Set of a key that exists | heap of the index, for each object
//	-----------|--------|--------------------------|-----------------------------------
//	Table      | 450 ns | 510 ns, 0 allocations    |  14 to 18 B
//	pmap.Live  | 570 ns | 770 ns, 1 allocation     |  69 B
//	sync.Map   | 1.3 µs | 2.1 µs, 2 allocations    | 142 B
//	limit      | 300 ns | 470 ns                   |  63 B
//
// (one run on a machine with several times more work than processors). By time pmap would
// do, by memory it would not: a WorkloadEntry would take an eighth more heap, an object in
// the merged view of configs three times as much.
//
// # Concurrency
//
// Get and Each may be called at any time and take no lock. The methods that change the
// table, and Len, must not be called concurrently with each other. A reader sees each
// key before or after a change. There are two exceptions: one that runs beside a Set
// which grows the table sees what there was before; one that runs beside a Set which
// gives an object with another note to a key whose objects need it may find none.
package ptrtable
