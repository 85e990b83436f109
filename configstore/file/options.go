// SPDX-License-Identifier: Apache-2.0

package file

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/pilotkit/pilotkit/configstore/manifest"
)

// The defaults of Options.
const (
	defaultRescan    = time.Minute
	defaultDebounce  = 50 * time.Millisecond
	defaultMaxErrors = 1000
)

// completion is how long Run waits for the rest of what looks unfinished: a file
// that was emptied, a directory that has just come back.
const completion = time.Second

// Options of a Source. The zero value works.
type Options struct {
	// Logger gets each error and each warning once, when it appears, and a note
	// when it is gone. Default: nil, which discards.
	Logger *slog.Logger
	// Domain is written to the Domain of every object. Default: empty.
	Domain string
	// DefaultNamespace is the namespace of objects of namespaced kinds that
	// name none. Default: empty, which leaves the namespace empty.
	DefaultNamespace string
	// Lenient ignores unknown fields, as manifest.Options.Lenient does.
	// Default: an object with an unknown field is an error.
	Lenient bool
	// Rescan is the interval between two scans of every file. A scan finds changes without
	// notifications: on network file systems, and behind symbolic links out of the directory or to
	// hidden files. The default is one minute; a negative value disables it.
	Rescan time.Duration
	// Debounce is how long Run waits after a notification for further ones; if it
	// is about a single file that was written, a fifth of that. It waits at most
	// ten times as long if they do not stop. Default: 50 ms; negative: no wait.
	Debounce time.Duration
	// MaxFileBytes is the size of the largest file that is read; a larger one is
	// an error. Default: manifest.DefaultMaxBytes; negative: no limit.
	MaxFileBytes int
	// MaxDocuments is the number of documents in the largest file that is read,
	// as manifest.Options.MaxDocuments. Default: manifest.DefaultMaxDocuments;
	// negative: no limit.
	MaxDocuments int
	// MaxErrors is how many errors, and how many warnings, are reported of one file.
	// The others are counted. Default, for values below 1: 1000.
	MaxErrors int
	// SkipValidation leaves it to the store to check objects by the rules of
	// their schemas; there are no warnings then. Default: an object that its
	// schema finds invalid is an error with the place in the file, and the store
	// does not get it.
	SkipValidation bool
}

func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Rescan = cmp.Or(o.Rescan, defaultRescan)
	o.Debounce = cmp.Or(o.Debounce, defaultDebounce)
	o.MaxFileBytes = cmp.Or(o.MaxFileBytes, manifest.DefaultMaxBytes)
	if o.MaxErrors <= 0 {
		o.MaxErrors = defaultMaxErrors
	}
	return o
}

func (o Options) manifest() manifest.Options {
	return manifest.Options{
		Domain: o.Domain, DefaultNamespace: o.DefaultNamespace, Lenient: o.Lenient,
		MaxBytes: o.MaxFileBytes, MaxDocuments: o.MaxDocuments,
	}
}
