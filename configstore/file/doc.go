// SPDX-License-Identifier: Apache-2.0

// Package file keeps the objects of a directory of Kubernetes-style manifests
// in a store, and follows the directory.
//
//	store := memory.Make(istio.Schemas())
//	source := file.New("config", store, file.Options{})
//	go source.Run(stop)
//
// # Files
//
// The source reads all files below the directory with a name that ends in .yaml, .yml or .json, as
// package manifest does. Files and directories with a leading dot in their names are skipped,
// because editors, version control and kubelet keep their own files there. Symbolic links are
// followed, each file once, so that a mounted ConfigMap is read correctly. Paths are compared as
// strings, with slashes and relative to the directory.
//
// If several documents define an object, the first by path and then by place in the file wins; the
// others are reported. When the first goes away, the next takes over, which is one update.
//
// # Last good state
//
// Invalid content is reported as an error of the Report, and has no other effect:
//
//   - A document that is bad, or that the schema of its kind rejects, leaves its object unchanged.
//     The identity of the object is read from apiVersion, kind and metadata, which can usually be
//     recovered even if other parts of the document are invalid, including broken YAML. A new
//     object is not stored until it is valid.
//   - A document of an unknown kind is skipped. However, if its kind was changed to an unknown one,
//     its object stays, because such a change is probably a typing error.
//   - If the identity of a document's object cannot be read, the document may define any object
//     that is missing from its file, so all of these objects stay until the file can be read. Other
//     files that define them take precedence. This does not apply to a document that stood in the
//     file before without defining any of these objects.
//   - A file that cannot be read, or that exceeds the limits of the Options, keeps its objects in
//     the same way. A directory that cannot be read keeps the objects of all files below it. If the
//     source's own directory is missing or cannot be read, nothing changes at all.
//   - A panic of the schema or of the store while it handles an object is an error of the Report,
//     too. For a panic of the store, the Logger gets the stack as well.
//   - A file or subdirectory that is missing from a readable directory has been deleted, and its
//     objects are deleted.
//
// Run may see changes while they are being made. If a file has become empty, or if files are
// missing from a directory that has just come back, Run looks again a second later. Reload assumes
// that the directory is complete.
//
// # Errors and warnings
//
// The Report lists each error and each warning with file, document, line and object, for as long as
// it persists; the Logger gets it once, and a note when it is resolved. Warnings come from the
// schemas of stored objects, and from mistyped kinds and versions. Documents that were not meant
// for the store, such as a Deployment, a values.yaml or a package.json, are only counted.
//
// # Cost
//
// A change costs the documents that have changed, wherever they are in a file, and
// one hash of the file; if files are symbolic links, also a walk through the
// directory. A file is read document by document: the memory held
// meanwhile is the file, the objects, and the tree of one document. Files are
// bounded in bytes and documents, and in the errors that are reported of them. Only
// regular files are opened, and reading one never waits.
//
// # Ownership
//
// The source writes an object when the documents that define it change, and deletes the object when
// no document defines it. It never modifies an object of another writer: an object of the same key
// that another writer has put into the store is left alone and reported as ErrNotOwned, until it
// goes away. Others may write to the source's objects. Their changes stay until the document
// changes; a status that the document does not set stays even then. Files do not set
// resourceVersion and generation, which belong to the store.
//
// The creation time of a document without creationTimestamp is time.Unix(0, 0). Among competing
// objects the first by namespace and name therefore wins, in every process that reads the
// directory, regardless of the order of writes.
//
// An unchanged object is not written: it keeps its revision and causes no event. All changes found
// in one pass over the directory are written as one batch if the store is a
// configstore.BatchWriter, so that readers see all of them or none. If the store rejects the batch,
// as configstore/etcd does when it is too large, the changes are written one by one.
//
// # Concurrency
//
// All methods may be called from any goroutine.
package file
