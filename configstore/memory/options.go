// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"log/slog"
	"time"

	"github.com/pilotkit/pilotkit/configstore"
)

// Options of a Store. The zero value works.
type Options struct {
	// SkipValidation accepts objects that break the rules of their schema's
	// Validate. Names, scopes and message types are checked all the same. The
	// default is to validate.
	SkipValidation bool
	// Mirror is for a store that shows the objects of another one. Objects keep the ResourceVersion
	// and the Generation of the write, and an Update in which these differ is a change. The
	// ResourceVersion of an Update is the new version, not a precondition. By default the store
	// sets both fields.
	Mirror bool
	// OnWarning is called with the validator's warnings after a successful write, with no lock
	// held. The default is to drop warnings.
	OnWarning func(key configstore.ConfigKey, warnings []configstore.Violation)
	// HistoryLimit is the number of changes that are kept for Watch. The
	// default, for values below 1, is 1024.
	HistoryLimit int
	// DetectMutations makes the store panic, naming the object, when it finds a
	// stored object that was changed outside of the store: when such an object is
	// read, listed, replaced, deleted or has been handed to an event handler. It
	// keeps a copy of each object, compares each access with it, and is meant for
	// tests. These panics are not kept from the caller, within an event handler
	// neither. The default is off.
	DetectMutations bool
}

// ControllerOptions are the options of a Controller. The zero value works.
type ControllerOptions struct {
	// Logger gets a warning for each call of a handler that took longer than
	// SlowHandler, when the call has returned; one that never returns shows in
	// Flush, which does not either. It gets an error for each call that panicked,
	// with the stack. The default, nil, discards.
	Logger *slog.Logger
	// SlowHandler is the time that a handler may take before it is logged; it is
	// never interrupted or skipped. The default is one second.
	SlowHandler time.Duration
}

// defaultHistory is the default of Options.HistoryLimit.
const defaultHistory = 1024
