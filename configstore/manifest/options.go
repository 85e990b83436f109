// SPDX-License-Identifier: Apache-2.0

package manifest

// The defaults of Options.
const (
	DefaultMaxBytes     = 64 << 20
	DefaultMaxDocuments = 100_000
)

// Options say how manifests are read. The zero value reads strictly.
type Options struct {
	// Domain is written to the Domain of every object, for example
	// "cluster.local". Default: empty.
	Domain string
	// DefaultNamespace is the namespace of objects of namespaced kinds that
	// name none. Default: empty, which leaves the namespace empty.
	DefaultNamespace string
	// Lenient drops fields that are unknown, a status of a kind that has none,
	// and the namespace of an object of a cluster-scoped kind. Default: each of
	// them is an error. Duplicate keys and values of a wrong type are errors in
	// any case.
	Lenient bool
	// MaxBytes is the largest input that is read. Default: DefaultMaxBytes;
	// negative: no limit.
	MaxBytes int
	// MaxDocuments is the largest number of documents in an input that is read,
	// empty ones included. Default: DefaultMaxDocuments; negative: no limit.
	MaxDocuments int
}
