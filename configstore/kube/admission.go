// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/excerpt"
	"github.com/pilotkit/pilotkit/internal/options"
)

// DefaultMaxReviewBytes is the default of AdmissionOptions.MaxBytes. An API server
// takes requests of up to 3 MiB; the review of an update has the old object, too.
const DefaultMaxReviewBytes = 8 << 20

// AdmissionOptions are options of NewAdmissionHandler. The zero value works.
type AdmissionOptions struct {
	// Domain is written to the Domain of configs, as by Options.Domain. Default: empty.
	Domain string
	// MaxBytes is the largest request body that is read. Default, and if negative:
	// DefaultMaxReviewBytes.
	MaxBytes int64
}

// NewAdmissionHandler returns a handler that answers the AdmissionReviews (v1) of an API
// server's ValidatingWebhookConfiguration: it refuses the objects that a Cache of the same
// schemas would not show.
//
// An object of a CREATE or UPDATE is decoded and validated as by a Cache, under whatever
// version of its kind it is written. If it is malformed or invalid, the API server's client
// gets an error of reason Invalid, whose message names the object and every field, and whose
// details have a cause for each. What the schema only warns of, fields that it does not know,
// and a status that cannot be decoded, are warnings, which kubectl prints; there are at most
// 20 of up to 256 bytes.
//
// These are allowed whatever they hold: deletes; objects that are being deleted, whose
// finalizers could not be removed otherwise; subresources, so that the status of an object
// can say that it is invalid, with warnings; and kinds that the schemas do not have, with
// a warning that says so.
//
// A request that is no review is answered in plain text: 405 if it is no POST, 415 if it is
// no application/json, 413 if it is too large, else 400. It is the API server's failurePolicy
// that decides what becomes of the object then.
//
// The handler has no state and no side effects: a webhook may say "sideEffects: None", and
// dry runs are judged like others. TLS, time limits, and who may ask, are the program's
// http.Server's. The handler may be used by any number of goroutines; each request holds a
// small multiple of its body.
func NewAdmissionHandler(schemas configstore.Schemas, opts ...AdmissionOptions) http.Handler {
	h := &admissionHandler{schemas: schemas, opts: options.One("kube.NewAdmissionHandler", opts)}
	if h.opts.MaxBytes <= 0 {
		h.opts.MaxBytes = DefaultMaxReviewBytes
	}
	return h
}

type admissionHandler struct {
	schemas configstore.Schemas
	opts    AdmissionOptions
}

// reviewVersion and reviewKind are those of an AdmissionReview.
const (
	reviewVersion = "admission.k8s.io/v1"
	reviewKind    = "AdmissionReview"
)

// ServeHTTP implements http.Handler.
func (h *admissionHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, status, err := h.body(w, r)
	if err != nil {
		http.Error(w, err.Error(), status)
		return
	}
	request, err := reviewRequest(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	response, err := h.review(request)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	response.UID = request.UID
	answer, err := json.Marshal(&admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: reviewVersion, Kind: reviewKind}, Response: response,
	})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(answer) // If the client is gone, nobody is left to be told.
}

// body returns the body of a request, or an error and the HTTP status that says so.
func (h *admissionHandler) body(w http.ResponseWriter, r *http.Request) (body []byte, status int, err error) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return nil, http.StatusMethodNotAllowed, fmt.Errorf("the method is %q, must be POST", r.Method)
	}
	contentType := r.Header.Get("Content-Type")
	if media, _, err := mime.ParseMediaType(contentType); err != nil || media != "application/json" {
		return nil, http.StatusUnsupportedMediaType, fmt.Errorf("the content type is %q, must be application/json", contentType)
	}
	body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, h.opts.MaxBytes))
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, http.StatusRequestEntityTooLarge, fmt.Errorf("the body has more than %d bytes", tooLarge.Limit)
	}
	if err != nil {
		return nil, http.StatusBadRequest, fmt.Errorf("read the body: %w", err)
	}
	return body, 0, nil
}

// reviewRequest decodes a review. The error says why it is none.
func reviewRequest(body []byte) (*admissionv1.AdmissionRequest, error) {
	var review admissionv1.AdmissionReview
	err := json.Unmarshal(body, &review)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the body is no %s: %w", reviewKind, err)
	case review.APIVersion != reviewVersion || review.Kind != reviewKind:
		return nil, fmt.Errorf("the body is %q of %q, must be %s of %s",
			excerpt.Cut(review.Kind), excerpt.Cut(review.APIVersion), reviewKind, reviewVersion)
	case review.Request == nil:
		return nil, errors.New("request is required")
	case review.Request.UID == "":
		return nil, errors.New("request.uid is required")
	}
	return review.Request, nil
}
