// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"log/slog"
	"time"

	"github.com/pilotkit/pilotkit/xdsupdate/ads"
)

// Options for New. The zero value works: proxies have the names of their own files.
type Options struct {
	// Function returns the secret of a name; an error that is ErrNotFound says that
	// there is none. Any other error is logged, and what proxies have stays: it must
	// not have any part of a key. It is called when a proxy asks for the secret and
	// then by Run, on goroutines of their own, with no lock held: once at a time for a
	// name, and for several names at once. It may take any time. A panic counts as an
	// error. Nil: there are only Files.
	Function func(Name) (*Secret, error)
	// Files are files of this process; they take precedence over Function. A Name
	// without a namespace is for proxies of every namespace.
	Files map[Name]Files
	// Names are names that proxies may ask for besides those that Gateways and
	// DestinationRules refer to and those of Files, in the form of resources:
	// "kubernetes://NAME", for instance.
	Names []string
	// Allow reports whether proxies of a namespace may have a credential of another
	// one. It is called like Function, and has answered no until it returns. Nil: they
	// may not.
	Allow func(proxyNamespace string, credential Name) bool
	// Interval is the time after which files are read and Function is called again;
	// 0: 10 seconds. Negative: only when Changed is called.
	Interval time.Duration
	// Timeout is how long reading files, Function or Allow may take before that is
	// logged as a failure, once. The answer counts whenever it comes. 0: 5 seconds.
	Timeout time.Duration
	// MaxBytes is the size of the largest file that is read, and of the largest
	// certificate chain, key and authorities that are served; a larger one is logged,
	// and what proxies have stays. 0: 1 MiB; negative: no limit.
	MaxBytes int
	// SystemRoots is the file of a proxy with the authorities of its operating
	// system, for "file-root:system"; empty: "/etc/ssl/certs/ca-certificates.crt".
	SystemRoots string
	// Logger gets secrets that cannot be read or served, without their contents; nil
	// discards.
	Logger *slog.Logger
	// Observer is told of panics of Function, Allow and the updater, where one begins
	// (ads.Observer.Panicked, in "secret", with the name), and of nothing else. It is
	// that of the server, mostly. Nil: nobody is told.
	Observer ads.Observer
}

// Files are the files of a secret, in PEM. Certificate and Key go together; what is
// empty the secret does not have.
type Files struct{ Certificate, Key, Authorities string }

const (
	defaultInterval    = 10 * time.Second
	defaultTimeout     = 5 * time.Second
	defaultMaxBytes    = 1 << 20
	defaultSystemRoots = "/etc/ssl/certs/ca-certificates.crt"
)

func (o Options) withDefaults() Options {
	if o.Interval == 0 {
		o.Interval = defaultInterval
	}
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = defaultMaxBytes
	}
	if o.SystemRoots == "" {
		o.SystemRoots = defaultSystemRoots
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}
