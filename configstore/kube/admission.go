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

// defaultMaxReviewBytes is the default of AdmissionOptions.MaxBytes. An API server accepts requests
// of up to 3 MiB; the review of an update contains the old object, too.
const defaultMaxReviewBytes = 8 << 20

// AdmissionOptions are options of NewAdmissionHandler. The zero value works.
type AdmissionOptions struct {
	// Domain is written to the Domain of configs, as by Options.Domain. Default: empty.
	Domain string
	// MaxBytes is the maximum size of a request body. Default, for values that are not positive:
	// 8 MiB.
	MaxBytes int64
}

// NewAdmissionHandler returns a handler that answers the AdmissionReviews (v1) of an API server's
// ValidatingWebhookConfiguration. It rejects the objects that a Cache of the same schemas would not
// publish.
//
// An object of a CREATE or UPDATE is decoded and validated as by a Cache, under any version of its
// kind. If it is malformed or invalid, the API server's client gets an error of reason Invalid. Its
// message names the object and every field, and its details contain a cause for each. Warnings of
// the schema, unknown fields, and a status that cannot be decoded become warnings, which kubectl
// prints; a response contains at most 20 of up to 256 bytes.
//
// The following requests are allowed regardless of their content: deletes; objects that are being
// deleted, because their finalizers could not be removed otherwise; subresources, with warnings, so
// that the status of an invalid object can be updated; and kinds that the schemas do not have, with
// a warning.
//
// A request that is not a review gets a response in plain text: 405 if it is not a POST, 415 if it
// is not application/json, 413 if it is too large, else 400. The API server's failurePolicy then
// decides whether the object is admitted.
//
// The handler has no state and no side effects: a webhook may set "sideEffects: None", and dry runs
// are reviewed like other requests. TLS, timeouts and client authentication are the concern of the
// host's http.Server. The handler may be used by any number of goroutines; each request holds a
// small multiple of the size of its body.
func NewAdmissionHandler(schemas configstore.Schemas, opts ...AdmissionOptions) http.Handler {
	h := &admissionHandler{schemas: schemas, opts: options.One("kube.NewAdmissionHandler", opts)}
	if h.opts.MaxBytes <= 0 {
		h.opts.MaxBytes = defaultMaxReviewBytes
	}
	return h
}

type admissionHandler struct {
	schemas configstore.Schemas
	opts    AdmissionOptions
}

// reviewVersion and reviewKind identify an AdmissionReview.
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
	_, _ = w.Write(answer) // The client may have disconnected.
}

// body returns the body of a request, or an error and its HTTP status.
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

// reviewRequest decodes a review. It returns an error if the body is not a review.
func reviewRequest(body []byte) (*admissionv1.AdmissionRequest, error) {
	var review admissionv1.AdmissionReview
	err := json.Unmarshal(body, &review)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the body is not a %s: %w", reviewKind, err)
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
