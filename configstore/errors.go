// SPDX-License-Identifier: Apache-2.0

package configstore

import (
	"errors"
	"strings"

	"github.com/pilotkit/pilotkit/internal/excerpt"
)

// The errors that stores return, always wrapped with the verb and the object.
var (
	// ErrNotFound: an Update, UpdateStatus or Delete named an object that does
	// not exist.
	ErrNotFound = errors.New("not found")
	// ErrAlreadyExists: a Create named an object that exists.
	ErrAlreadyExists = errors.New("already exists")
	// ErrConflict: the resource version that the caller gave is not the stored
	// one. Read the object again and retry.
	ErrConflict = errors.New("conflicting resource version")
	// ErrUnknownKind: the store has no schema for the kind.
	ErrUnknownKind = errors.New("unknown kind")
	// ErrInvalid: the object breaks a rule of its schema; the error is a
	// *ValidationError, which lists every violation.
	ErrInvalid = errors.New("invalid")
	// ErrReadOnly: the store takes no writes.
	ErrReadOnly = errors.New("read-only store")
	// ErrCompacted: the revision to watch from is older than the history that
	// the store keeps, or one that the store has not reached, as after a restart.
	// List again and watch from the revision of the list.
	ErrCompacted = errors.New("revision compacted")
)

// Violation is one rule that an object breaks.
type Violation struct {
	// Field is the path of the field in the object's YAML form, for example
	// "spec.ports[1].number". Empty if the object as a whole is meant.
	Field string
	// Message states the rule and the value that breaks it, for example "must be 1–65535, is
	// 70000".
	Message string
}

// String returns "field: message".
func (v Violation) String() string {
	if v.Field == "" {
		return v.Message
	}
	return v.Field + ": " + v.Message
}

// ValidationError lists all violations of one object. It matches ErrInvalid.
type ValidationError struct {
	// Key is the object.
	Key ConfigKey
	// Violations is never empty. Its last element may say how many more there are.
	Violations []Violation
}

// Error returns "Kind namespace/name is invalid: field: message; field: message".
// Its length has a bound: of many violations it tells the first and how many more
// there are.
func (e *ValidationError) Error() string {
	parts := make([]string, 0, maxErrorViolations+1)
	for i, v := range e.Violations {
		if i == maxErrorViolations {
			parts = append(parts, moreViolations(len(e.Violations)-i).Message)
			break
		}
		parts = append(parts, excerpt.CutTo(v.String(), maxMessageLength))
	}
	return e.Key.Object() + " is invalid: " + strings.Join(parts, "; ")
}

// Is makes errors.Is(err, ErrInvalid) true.
func (e *ValidationError) Is(target error) bool { return target == ErrInvalid }
