// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/pilotkit/pilotkit/configstore"
)

// The defaults of Options.
const (
	DefaultPrefix    = "/pilotkit"
	DefaultMaxTxnOps = 128

	defaultTimeout    = 10 * time.Second
	defaultProgress   = 5 * time.Second
	defaultMaxBackoff = 3 * time.Second
)

// Options of a Cache. The zero value works.
type Options struct {
	// Prefix is what all keys begin with, without the slash at its end. Caches with the
	// same prefix share their objects. Default: DefaultPrefix.
	Prefix string
	// Domain is the Domain of objects that are written without one, and of those that
	// others wrote. It is not stored; one that differs from it is. Default: empty.
	Domain string
	// MaxTxnOps is the number of objects that a batch may change, at most what the servers
	// allow by --max-txn-ops. Default: DefaultMaxTxnOps, which is theirs.
	MaxTxnOps int
	// Timeout is how long a write waits in all, and how long any other request waits for
	// its answer. Default: 10 seconds.
	Timeout time.Duration
	// ProgressInterval is how often the servers are asked for a sign of life; after two
	// intervals without one the content counts as stale, and the watch is made anew.
	// Default: 5 seconds.
	ProgressInterval time.Duration
	// MaxBackoff is the longest time between two attempts to reach etcd again, of which the
	// first is made within 200 ms; up to half of it is added at random. Default: 3 seconds.
	MaxBackoff time.Duration
	// SkipValidation accepts objects that break the rules of their schema's Validate, in
	// writes as well as in what others wrote. Default: they are refused.
	SkipValidation bool
	// OnWarning is called, after a successful write of this cache and with no lock held, with
	// what the validator found questionable. Default: warnings are dropped.
	OnWarning func(key configstore.ConfigKey, warnings []configstore.Violation)
	// HistoryLimit is the number of changes that are kept for Watch. Default, for values
	// below 1: that of package memory.
	HistoryLimit int
	// Logger gets each error of Errors once, when it appears, the beginning and the end of
	// each time in which etcd is away, and what is slow or panics, as that of
	// memory.ControllerOptions. Default: nil, which discards.
	Logger *slog.Logger
}

// withDefaults returns the options with what is not given filled in.
func (o Options) withDefaults() (Options, error) {
	if o.Prefix == "" {
		o.Prefix = DefaultPrefix
	}
	switch {
	case strings.HasSuffix(o.Prefix, "/"):
		return o, fmt.Errorf("Options.Prefix must not end with a slash, is %q", o.Prefix)
	case o.MaxTxnOps < 0:
		return o, fmt.Errorf("Options.MaxTxnOps must not be negative, is %d", o.MaxTxnOps)
	case o.Timeout < 0 || o.ProgressInterval < 0 || o.MaxBackoff < 0:
		return o, errors.New("the times of Options must not be negative")
	}
	if o.MaxTxnOps == 0 {
		o.MaxTxnOps = DefaultMaxTxnOps
	}
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	if o.ProgressInterval == 0 {
		o.ProgressInterval = defaultProgress
	}
	if o.MaxBackoff == 0 {
		o.MaxBackoff = defaultMaxBackoff
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o, nil
}
