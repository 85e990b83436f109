// SPDX-License-Identifier: Apache-2.0

// Package ptrtable has a hash table of pointers that does not keep the keys: it reads
// them through the pointers. It is for indexes of a million objects that exist anyway
// and contain their key.
//
// # Why not a map
//
// A map keeps the keys besides the objects, and readers of one need a lock. Maps that
// can be read without one, sync.Map and pmap.Live, take several times the memory of a
// Table and allocate for each change; docs/performance.md has the figures.
//
// # Concurrency
//
// Get and Each may be called at any time and take no lock. The methods that change the table, and
// Len, must not be called concurrently with each other. A reader sees each key before or after a
// change. There are two exceptions: a reader concurrent with a Set that grows the table sees the
// state before it; a reader concurrent with a Set that gives a key an object with another note,
// where objects need their notes, may find no object.
package ptrtable
