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
// Scalars mean what they mean to kubectl, which reads YAML 1.1: unquoted yes,
// no, on, off, y and n are booleans, 010 is eight, 1e3 is a number, 2024-01-01
// is a string. A number or a boolean where a string belongs is an error, as it
// is for an API server; integers of 64 bits keep every digit. Fields may be
// written in camelCase or as in the .proto file, enums by name or number.
// Durations take every unit of Go's time.ParseDuration, as Istio's own decoder
// does. Anchors, aliases and merge keys work.
//
// Of the metadata, what a configstore.Meta has a field for is kept. The rest of
// what an API server adds (managedFields, finalizers, selfLink, …) is accepted
// and dropped.
//
// # Errors
//
// Each document stands alone: a bad one never hurts another, nor does a bad
// item of a List hurt its neighbours. An error lists everything that is wrong
// with its document, with the path, line and column of each field, and matches
// ErrMalformed or configstore.ErrUnknownKind. Document.Foreign marks a document
// that was never meant for the schemas, such as a Deployment or a values.yaml,
// in contrast to one whose kind or version is mistyped.
//
// Parse checks the shape of objects, not their meaning: stores do that. Apply stores
// an input in one call, or nothing of it, and its errors have the place of both.
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
// The tree of a document takes up to fifty times the size of its text. Parse
// holds those of all documents until the caller drops them; ParseAll, Apply, and
// a caller of Texts hold one at a time.
//
// # Concurrency
//
// All functions but Apply are pure, and all may be called from any goroutine. The
// texts of one input share state and belong to one goroutine at a time.
package manifest
