// SPDX-License-Identifier: Apache-2.0

// Package file keeps the objects of a directory of Kubernetes-style manifests
// in a store, and follows the directory.
//
//	store := memory.Make(istio.Schemas())
//	source := file.New("config", store, file.Options{})
//	go source.Run(stop)
//
// # What is read
//
// All files below the directory whose name ends in .yaml, .yml or .json, read as
// package manifest says. Names with a leading dot are passed over, files and
// directories: editors, version control and kubelet keep theirs there. Symbolic
// links are followed, so that a mounted ConfigMap is read as it is meant, each
// file once. Paths are compared as strings, with slashes and relative to the
// directory.
//
// An object that several documents define is what the first of them says, by
// path and then by place in the file; the others are reported. When the first
// goes away, the next takes over, which is one update.
//
// # Last good state
//
// What is bad is an error of the Report, and has no other effect:
//
//   - A document that is bad, or that the schema of its kind finds invalid,
//     leaves its object as it is. Which object it is about is read from its
//     apiVersion, kind and metadata, which need not be spoilt by what is wrong
//     elsewhere, not even by broken YAML. An object that is new is not stored
//     until it is good.
//   - A document whose kind is unknown is skipped. But if its kind was changed to
//     an unknown one, its object stays: that is how a typing error looks.
//   - If it cannot be read which object a document is about, it may be any that
//     is missing from its file, and all of them stay until the file can be read.
//     They yield to other files that define them. A document that stood there
//     before, and was about none of them, is not meant.
//   - A file that cannot be read, or that exceeds the limits of the Options,
//     keeps its objects in the same way, and a directory that cannot be read
//     those of all files below. If it is the directory of the source that is gone
//     or cannot be read, nothing changes at all.
//   - An object at which its schema or the store panics is such an error; of a
//     panic of the store, the Logger gets the stack with it.
//   - A file, or a directory below that of the source, that is gone from a
//     directory that can be read, has been deleted, and so are its objects.
//
// Run sees changes while they are being made. When a file is empty that was not,
// or files are missing from a directory that has just come back, it looks again a
// second later. Reload takes what it sees for complete.
//
// # Errors and warnings
//
// The Report lists each error and each warning with file, document, line and
// object, for as long as it is there; the Logger gets it once, and a note when it
// is gone. Warnings are what the schemas find questionable about objects that are
// in the store, and kinds and versions that are mistyped. Documents that were not
// meant for the store, such as a Deployment, a values.yaml or a package.json, are
// only counted.
//
// # Cost
//
// A change costs the documents that have changed, wherever they are in a file, and
// one hash of the file. A file is read document by document: the memory held
// meanwhile is the file, the objects, and the tree of one document. Files are
// bounded in bytes and documents, and in the errors that are reported of them. Only
// regular files are opened, and reading one never waits.
//
// # Ownership
//
// The source writes an object when the documents about it change, and deletes it
// when there are none any more. It never touches what it has not created: an
// object of the same key that another writer has put into the store is left
// alone and reported as ErrNotOwned, until it goes away. Others may write to the
// source's objects; what they wrote stays until the document changes, and a
// status that the document does not have stays even then. Files have no say in
// resourceVersion and generation, which are the store's.
//
// A document without creationTimestamp was created at time.Unix(0, 0): of objects that
// compete the first by namespace and name counts, in every process that reads the directory,
// in whichever order the files came.
//
// An object that has not changed is not written: it keeps its revision and
// causes no event. All changes that one look at the directory has found are
// written as one batch if the store is a configstore.BatchWriter, so that
// readers see all of them or none. If the store refuses the batch, as
// configstore/etcd does of one that is too large for it, they are written one by one.
//
// # Concurrency
//
// All methods may be called from any goroutine.
package file
