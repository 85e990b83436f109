// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilotkit/pilotkit/configstore"
)

// isNoSuchPath reports whether the API server does not serve a resource, in contrast to an object
// that does not exist.
func isNoSuchPath(err error) bool {
	return apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// finish returns the outcome of a write, with the error as ConfigStore defines it.
func (w *write) finish(revision string, err error) (string, error) {
	if err == nil {
		return revision, nil
	}
	if err = w.translate(err); w.half {
		err = fmt.Errorf("the content was written, the status was not: %w", err)
	}
	return "", w.fail(err)
}

// fail wraps an error with the verb and the object.
func (w *write) fail(err error) error {
	if errors.Is(err, configstore.ErrInvalid) {
		return fmt.Errorf("%s: %w", w.op, err) // The error names the object itself.
	}
	return fmt.Errorf("%s %s: %w", w.op, w.config.Key().Object(), err)
}

// translate returns the error of ConfigStore that corresponds to an error of the API server. Other
// errors, such as a forbidden write, are returned unchanged.
func (w *write) translate(err error) error {
	switch {
	case apierrors.IsAlreadyExists(err):
		return configstore.ErrAlreadyExists
	case apierrors.IsNotFound(err) && !isNoSuchPath(err):
		return w.missing(err)
	case apierrors.IsConflict(err):
		return fmt.Errorf("%w: %w", configstore.ErrConflict, err)
	case apierrors.IsInvalid(err):
		return &configstore.ValidationError{Key: w.config.Key(), Violations: violations(err)}
	default:
		return err
	}
}

// missing returns the error for a 404. After a create it concerns the namespace, else the object.
func (w *write) missing(err error) error {
	if w.op == configstore.OpCreate {
		return err
	}
	return configstore.ErrNotFound
}

// violations returns the causes of an API server's error.
func violations(err error) []configstore.Violation {
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Details != nil {
		var out []configstore.Violation
		for _, cause := range status.Status().Details.Causes {
			out = append(out, configstore.Violation{Field: cause.Field, Message: cause.Message})
		}
		if len(out) > 0 {
			return out
		}
	}
	return []configstore.Violation{{Message: err.Error()}}
}
