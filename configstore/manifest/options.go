// SPDX-License-Identifier: Apache-2.0

package manifest

// DefaultMaxBytes is the default of Options.MaxBytes.
const DefaultMaxBytes = 64 << 20

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
}

func (o Options) maxBytes() int {
	if o.MaxBytes == 0 {
		return DefaultMaxBytes
	}
	return o.MaxBytes
}
