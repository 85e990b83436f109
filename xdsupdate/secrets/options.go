// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"log/slog"
	"time"

	"github.com/pilotkit/pilotkit/xdsupdate/ads"
)

// Options are the options of New. The zero value works: proxies get the names of their own files.
type Options struct {
	// Function returns the secret of a name, or an error that wraps ErrNotFound if there is none.
	// Any other error is logged, and proxies keep the last good secret. An error must not contain
	// any part of a key. Function is called when a proxy subscribes to the secret, and then by Run.
	// Each call runs on a goroutine of its own with no lock held; calls for one name are serial,
	// calls for several names are concurrent. A call may take any time. A panic counts as an error.
	// With nil only Files are served.
	Function func(Name) (*Secret, error)
	// Files are files of this process. They take precedence over Function. A Name without a
	// namespace is available to proxies of every namespace.
	Files map[Name]Files
	// Names are further names that proxies may subscribe to, in the form of resource names such as
	// "kubernetes://NAME". The names in Files, Gateways and DestinationRules need not be listed.
	Names []string
	// Allow reports whether proxies of a namespace may have a credential of another one. It is
	// called like Function. Until it returns, the answer is no. Nil denies all.
	Allow func(proxyNamespace string, credential Name) bool
	// Interval is the time between two reads of files and calls of Function. 0 means 10 seconds. If
	// it is negative, secrets are refreshed only when Changed is called.
	Interval time.Duration
	// Timeout is the time after which a lookup of files, Function or Allow is logged as a failure,
	// once. A later result is still used. 0 means 5 seconds.
	Timeout time.Duration
	// MaxBytes is the maximum size of a file, and of each part of a secret. A larger one is logged,
	// and proxies keep the last good secret. 0 means 1 MiB, a negative value no limit.
	MaxBytes int
	// SystemRoots is the file of the system's certificate authorities on the proxy's host, for
	// "file-root:system". The default is "/etc/ssl/certs/ca-certificates.crt".
	SystemRoots string
	// Logger receives secrets that cannot be read or served, without their contents. Nil discards.
	Logger *slog.Logger
	// Observer is notified of panics of Function, Allow and the updater when one begins
	// (ads.Observer.Panicked, in "secret", with the name). Its other methods are not called.
	// Usually it is the observer of the server. Nil notifies nobody.
	Observer ads.Observer
}

// Files are the PEM files of a secret. Certificate and Key go together. An empty path means that
// the secret does not have that part.
type Files struct{ Certificate, Key, Authorities, Revocations string }

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
