// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/pilotkit/pilotkit/configstore"
)

// The defaults of Options.
const (
	defaultPrefix     = "/pilotkit"
	defaultMaxTxnOps  = 128
	defaultTimeout    = 10 * time.Second
	defaultProgress   = 5 * time.Second
	defaultMaxBackoff = 3 * time.Second
)

// Options of a Cache. The zero value works.
type Options struct {
	// Prefix is the prefix of all keys, without the trailing slash. Caches with the same prefix
	// share their objects. Default: "/pilotkit".
	Prefix string
	// Domain is the Domain of objects that are written without one, and of objects that others
	// wrote. It is not stored; a different Domain is. Default: empty.
	Domain string
	// MaxTxnOps is the maximum number of objects in a batch, at most the servers' --max-txn-ops.
	// Default: 128, the servers' default.
	MaxTxnOps int
	// Timeout is the timeout of a write as a whole, and of every other request. Default: 10
	// seconds.
	Timeout time.Duration
	// ProgressInterval is the interval of the progress requests to the servers. After two intervals
	// without a response the content counts as stale, and the watch is opened again, with twice as
	// much time for the response, up to 32 intervals. Default: 5 seconds.
	ProgressInterval time.Duration
	// MaxBackoff is the maximum backoff between two attempts to reach etcd, before jitter; the
	// first retry follows within 300 ms. The jitter adds up to half of the backoff. Default: 3
	// seconds.
	MaxBackoff time.Duration
	// SkipValidation accepts objects that violate the Validate rules of their schema, both in
	// writes and in values of other writers. Default: such objects are rejected.
	SkipValidation bool
	// OnWarning is called with the warnings of the validator, after a successful write of this
	// cache and without locks held. Default: warnings are dropped.
	OnWarning func(key configstore.ConfigKey, warnings []configstore.Violation)
	// HistoryLimit is the number of changes that are kept for Watch. Default, for values below 1:
	// the default of package memory.
	HistoryLimit int
	// Logger gets each error of Errors once, when it appears, the beginning and the end of each
	// outage of etcd, and slow or panicking handlers, like the Logger of memory.ControllerOptions.
	// Default: nil, which discards.
	Logger *slog.Logger
}

// withDefaults returns a copy of the options with the defaults filled in.
func (o Options) withDefaults() (Options, error) {
	o.Prefix = cmp.Or(o.Prefix, defaultPrefix)
	switch {
	case strings.HasSuffix(o.Prefix, "/"):
		return o, fmt.Errorf("Options.Prefix must not end with a slash, is %q", o.Prefix)
	case o.MaxTxnOps < 0:
		return o, fmt.Errorf("Options.MaxTxnOps must not be negative, is %d", o.MaxTxnOps)
	case o.Timeout < 0 || o.ProgressInterval < 0 || o.MaxBackoff < 0:
		return o, errors.New("the times of Options must not be negative")
	}
	o.MaxTxnOps = cmp.Or(o.MaxTxnOps, defaultMaxTxnOps)
	o.Timeout = cmp.Or(o.Timeout, defaultTimeout)
	o.ProgressInterval = cmp.Or(o.ProgressInterval, defaultProgress)
	o.MaxBackoff = cmp.Or(o.MaxBackoff, defaultMaxBackoff)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o, nil
}
