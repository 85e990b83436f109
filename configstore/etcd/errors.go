// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pilotkit/pilotkit/configstore"
)

// The errors of this package in addition to those of configstore.
var (
	// ErrUnavailable means that etcd did not respond to a write in time. If the request was sent,
	// it may or may not have been executed: read the object again once Status is not stale.
	ErrUnavailable = errors.New("etcd does not answer")
	// ErrNotShown means that a write is committed, at the revision that is returned with the error,
	// but is not in this cache yet, because its watch is behind.
	ErrNotShown = errors.New("committed, but not yet shown by this cache")
	// ErrTooLarge means that a batch changes more objects than a transaction may; no object is
	// written.
	ErrTooLarge = errors.New("batch is too large for one transaction")
	// ErrKey means that a key below the prefix does not have the format of this package.
	ErrKey = errors.New("malformed key")
	// ErrMismatch means that a value contains another object than its key.
	ErrMismatch = errors.New("value does not belong to its key")
	// ErrLeaseLost means that a lease has expired or was revoked; its objects are deleted.
	ErrLeaseLost = errors.New("lease lost")
)

// Error is one key in etcd whose value is not in the cache.
type Error struct {
	// Key is the key in etcd.
	Key string
	// Object is the object of the key, or the zero key if the key is malformed. The version of an
	// unknown kind is empty.
	Object configstore.ConfigKey
	// Revision is the mod revision of the value. The cache has an older state of the object, or
	// none.
	Revision int64
	// Since is the time of the first occurrence in this process.
	Since time.Time
	// Err is the cause. It matches ErrKey, ErrMismatch, manifest.ErrMalformed,
	// configstore.ErrUnknownKind or configstore.ErrInvalid.
	Err error
}

// Error returns "key: reason".
func (e *Error) Error() string { return e.Key + ": " + e.Err.Error() }

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// requestError converts an error response of etcd, or a missing response, to an error of this
// package.
func (c *Cache) requestError(err error) error {
	switch {
	case errors.Is(err, rpctypes.ErrLeaseNotFound):
		return fmt.Errorf("%w: %w", ErrLeaseLost, err)
	case errors.Is(err, rpctypes.ErrTooManyOps):
		return fmt.Errorf("%w: Options.MaxTxnOps is %d, the servers' --max-txn-ops is less", ErrTooLarge, c.opts.MaxTxnOps)
	case errors.Is(err, rpctypes.ErrRequestTooLarge):
		return fmt.Errorf("%w: its bytes are more than the servers' --max-request-bytes", ErrTooLarge)
	case isOversized(err):
		return fmt.Errorf("%w: %w", ErrTooLarge, err)
	case !isUnavailable(err):
		return fmt.Errorf("etcd: %w", err)
	}
	if last := c.Status().Err; last != nil {
		return fmt.Errorf("%w: %w (the watch: %w)", ErrUnavailable, err, last)
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

// isOversized reports whether gRPC has rejected a request or a response because of its size.
func isOversized(err error) bool {
	_, answer := errors.AsType[rpctypes.EtcdError](err)
	return !answer && status.Code(err) == codes.ResourceExhausted
}

// isUnavailable reports whether an error means that etcd did not respond, in contrast to an error
// response.
func isUnavailable(err error) bool {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return true
	}
	code := status.Code(err)
	if etcdErr, ok := errors.AsType[rpctypes.EtcdError](err); ok {
		code = etcdErr.Code()
	}
	switch code {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled, codes.Internal:
		return true
	default:
		return false
	}
}
