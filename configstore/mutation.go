// SPDX-License-Identifier: Apache-2.0

package configstore

import "strconv"

// Op is the operation of a Mutation.
type Op int

// The operations of a ConfigStore. The zero value is no operation.
const (
	OpCreate Op = iota + 1
	OpUpdate
	OpUpdateStatus
	OpDelete
	// OpUpsert is what Upsert does: OpUpdate of what exists or has a
	// ResourceVersion, otherwise OpCreate.
	OpUpsert
)

// String returns the verb that begins the operation's errors: "create",
// "update", "update status of", "delete" or "upsert".
func (o Op) String() string {
	switch o {
	case OpCreate:
		return "create"
	case OpUpdate:
		return "update"
	case OpUpdateStatus:
		return "update status of"
	case OpDelete:
		return "delete"
	case OpUpsert:
		return "upsert"
	default:
		return "Op(" + strconv.Itoa(int(o)) + ")"
	}
}

// Mutation is one change of a batch.
type Mutation struct {
	Op Op
	// Config is the argument of the ConfigStore method of that name. For OpDelete
	// only its key and, unless empty, its ResourceVersion count.
	Config Config
	// Checked spares the store a second validation of Config, if it is evidence of
	// this Config and of the store's own schema; otherwise it has no effect. May
	// be nil. Stores take it by Schemas.Recheck.
	Checked *Checked
}

// BatchWriter is the optional ability of a store to commit several changes as
// one. Find it with As.
type BatchWriter interface {
	// Apply commits a batch, all or nothing, and returns the store's revision after it. Each
	// mutation sees the effects of the mutations before it; readers see none or all of them; their
	// events are delivered without another event in between. A store whose transactions write an
	// object at most once may report only the net change of several mutations of one object, and
	// says so. The error is that of the first mutation that is not possible.
	Apply(mutations ...Mutation) (revision uint64, err error)
}
