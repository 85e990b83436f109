// SPDX-License-Identifier: Apache-2.0

// Package manifest turns Kubernetes-style YAML and JSON into configs and back,
// exactly as users write them for kubectl.
//
//	for _, doc := range manifest.Parse(istio.Schemas(), data, manifest.Options{}) {
//		if doc.Err != nil {
//			fmt.Println(doc.Err) // "document 2, ServiceEntry default/db: line 14, column 5: spec.hostz: unknown field"
//			continue
//		}
//		store.Create(doc.Config)
//	}
//
// # Input
//
// The input is any number of documents: YAML separated by "---" lines, or JSON
// objects one after the other. Documents that are empty or null are skipped.
// A "kind: List", and a list of one kind such as ServiceEntryList, stands for
// its items. Kinds may be written in any version that their schema knows.
//
// Scalars are read as kubectl reads them, by YAML 1.1: unquoted yes, no, on, off, y and n are
// booleans, 010 is eight, 1e3 is a number, 2024-01-01 is a string. A number or a boolean in the
// place of a string is an error, as it is for an API server; integers of 64 bits keep every digit.
// Fields may be written in camelCase or as in the .proto file, enums by name or number. Durations
// take every unit of Go's time.ParseDuration, as Istio's own decoder does. Anchors, aliases and
// merge keys work.
//
// Metadata with a field in configstore.Meta is kept. The other fields that an API server adds
// (managedFields, finalizers, selfLink, …) are accepted and dropped.
//
// # Errors
//
// Each document is independent: an invalid one never affects another, and an invalid item of a List
// does not affect the other items. An error lists every problem of its document, with the path,
// line and column of each field, and matches ErrMalformed or configstore.ErrUnknownKind.
// Document.Foreign marks a document that was never meant for the schemas, such as a Deployment or a
// values.yaml, in contrast to a document with a mistyped kind or version.
//
// Parse checks the shape of objects, not their meaning; stores check that. Apply stores all objects
// of an input in one call, or none of them. Its errors have a place in the input for problems of
// both kinds.
//
// # Limits
//
// Options limit the bytes and the documents of an input. A document nests at most
// 200 levels deep and has at most four million nodes. What aliases and merge keys
// stand for is at most as large as the input, plus 256 KiB, in all its documents
// together. What exceeds a limit is an error of one line, found in time
// proportional to the input.
//
// # Memory
//
// The tree of a document takes up to fifty times the size of its text. Parse holds the trees of all
// documents until the caller drops them; ParseAll, Apply, and a caller of Texts hold one at a time.
//
// # Concurrency
//
// All functions but Apply are pure, and all may be called from any goroutine. The
// texts of one input share state and belong to one goroutine at a time.
package manifest
