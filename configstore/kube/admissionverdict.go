// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/manifest"
	"github.com/pilotkit/pilotkit/internal/excerpt"
	"github.com/pilotkit/pilotkit/internal/guard"
)

// The size limits of a response. An API server truncates longer warnings and drops warnings beyond
// 4096 bytes in total; a message is as long as the message of a ValidationError.
const (
	maxReviewWarnings = 20
	maxWarningLength  = 224 // at most 256 with the suffix that package excerpt adds
	maxReviewFields   = 20
	maxFieldLength    = 4096
)

// review returns the response to a request. It returns an error if the review contradicts itself.
func (h *admissionHandler) review(request *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error) {
	allowed := &admissionv1.AdmissionResponse{Allowed: true}
	switch request.Operation {
	case admissionv1.Delete, admissionv1.Connect:
		return allowed, nil
	case admissionv1.Create, admissionv1.Update:
	default:
		return nil, fmt.Errorf("request.operation is %q, must be CREATE, UPDATE, DELETE or CONNECT", excerpt.Cut(string(request.Operation)))
	}
	kind := configstore.GroupVersionKind(request.Kind)
	if kind.Kind == "" || kind.Version == "" {
		return nil, errors.New("request.kind: kind and version are required")
	}
	found, known := h.schemas.Find(kind)
	if !known {
		allowed.Warnings = []string{reviewWarning(fmt.Sprintf("unknown kind %s/%s: it is not checked", kind.APIVersion(), kind.Kind))}
		return allowed, nil
	}
	o, err := reviewedObject(request)
	if err != nil {
		return nil, err
	}
	d := &decoder{schema: &found, schemas: h.schemas, domain: h.opts.Domain}
	return d.judge(o, request.SubResource != ""), nil
}

// reviewedObject decodes the metadata of the object under review.
func reviewedObject(request *admissionv1.AdmissionRequest) (*object, error) {
	if isNull(request.Object.Raw) {
		return nil, errors.New("request.object is required")
	}
	o := &object{}
	if err := json.Unmarshal(request.Object.Raw, o); err != nil {
		return nil, fmt.Errorf("request.object is not an object: %w", err)
	}
	if is, said := o.GroupVersionKind(), schema.GroupVersionKind(request.Kind); is != said {
		return nil, fmt.Errorf("request.object is a %s of %q, request.kind says a %s of %q",
			excerpt.Name(is.Kind), excerpt.Cut(is.GroupVersion().String()), excerpt.Name(said.Kind), excerpt.Cut(said.GroupVersion().String()))
	}
	// The API server generates a name after admission.
	if o.Name == "" {
		o.Name = o.GenerateName
	}
	if o.Namespace == "" {
		o.Namespace = request.Namespace
	}
	return o, nil
}

// judge returns the response for an object of a known kind.
func (d *decoder) judge(o *object, subresource bool) *admissionv1.AdmissionResponse {
	key := (&configstore.Config{Meta: d.meta(o)}).Key()
	var response *admissionv1.AdmissionResponse
	if p := guard.Call(func() { response = d.verdict(o, key, subresource) }); p != nil {
		// A schema of the host panicked. A cache does not publish such an object either.
		defect := configstore.Violation{Message: "decoding it ended in a " + p.Error()}
		return answer(o, key, &configstore.ValidationError{Key: key, Violations: []configstore.Violation{defect}}, nil, subresource)
	}
	return response
}

// verdict is judge without the protection against panics.
func (d *decoder) verdict(o *object, key configstore.ConfigKey, subresource bool) *admissionv1.AdmissionResponse {
	_, found := d.decode(o)
	return answer(o, key, found.err, d.reviewWarnings(o, key, found), subresource)
}

// answer returns the response for an object. It rejects the object if err is not nil, unless the
// request concerns a subresource or the object is being deleted.
func answer(o *object, key configstore.ConfigKey, err error, warnings []string, subresource bool) *admissionv1.AdmissionResponse {
	response := &admissionv1.AdmissionResponse{Allowed: true, Warnings: warnings}
	switch {
	case err == nil:
	case subresource, o.DeletionTimestamp != nil:
		response.Warnings = append(response.Warnings, reviewWarning(verdictText(key, err)))
	default:
		response.Allowed, response.Result = false, refusal(key, err)
	}
	return response
}

// reviewWarnings returns the warnings for an object: a status that cannot be decoded, unknown
// fields, and the warnings of the schema. An object whose spec cannot be decoded has none.
func (d *decoder) reviewWarnings(o *object, key configstore.ConfigKey, found findings) []string {
	list := found.warnings
	if found.status != nil {
		list = append(violationsOf(found.status), list...)
	}
	list = append(d.unknownFields(o, found.err), list...)
	var out []string
	for i, v := range list {
		if i == maxReviewWarnings-1 && len(list) > maxReviewWarnings {
			return append(out, reviewWarning(key.Object()+": and "+strconv.Itoa(len(list)-i)+" more"))
		}
		out = append(out, reviewWarning(key.Object()+": "+v.String()))
	}
	return out
}

// unknownFields returns the spec's unknown fields of an object that is rejected with err. For an
// accepted object the findings contain them as warnings. It returns nil if the spec is malformed.
func (d *decoder) unknownFields(o *object, err error) []configstore.Violation {
	if err == nil || errors.Is(err, manifest.ErrMalformed) {
		return nil
	}
	if _, ok := unmarshal(o.Spec, d.schema.NewSpec()); ok {
		return nil
	}
	if _, err := d.parse(o, "spec", o.Spec, manifest.Options{}); err != nil {
		return violationsOf(err)
	}
	return nil
}

// violationsOf returns the fields and messages of an error of findings.
func violationsOf(err error) []configstore.Violation {
	if invalid, ok := errors.AsType[*configstore.ValidationError](err); ok {
		return invalid.Violations
	}
	malformed, ok := errors.AsType[*manifest.Error](err)
	if !ok {
		return []configstore.Violation{{Message: err.Error()}}
	}
	// Lines and columns would refer to a generated document, not to the user's text.
	out := make([]configstore.Violation, len(malformed.Problems))
	for i, p := range malformed.Problems {
		out[i] = configstore.Violation{Field: p.Path, Message: p.Message}
	}
	return out
}

// verdictText returns "Kind namespace/name is invalid: field: message; field: message".
func verdictText(key configstore.ConfigKey, err error) string {
	verdict := " is invalid: "
	if errors.Is(err, manifest.ErrMalformed) {
		verdict = " is malformed: "
	}
	var parts []string
	list := violationsOf(err)
	for i, v := range list {
		if i == maxReviewFields {
			parts = append(parts, "and "+strconv.Itoa(len(list)-i)+" more")
			break
		}
		parts = append(parts, excerpt.CutTo(v.String(), maxFieldLength))
	}
	return key.Object() + verdict + strings.Join(parts, "; ")
}

// refusal returns the status for the API server's client, with a cause for each field.
func refusal(key configstore.ConfigKey, err error) *metav1.Status {
	s := &metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid,
		Message: verdictText(key, err),
		Details: &metav1.StatusDetails{Name: key.Name, Group: key.Kind.Group, Kind: key.Kind.Kind},
	}
	for i, v := range violationsOf(err) {
		if i == maxReviewFields {
			break
		}
		s.Details.Causes = append(s.Details.Causes, metav1.StatusCause{
			Type: metav1.CauseTypeFieldValueInvalid, Field: excerpt.CutTo(v.Field, maxFieldLength), Message: excerpt.CutTo(v.Message, maxFieldLength),
		})
	}
	return s
}

// reviewWarning returns a warning in the form that an API server passes on: one short line.
func reviewWarning(text string) string {
	return excerpt.CutTo(strings.Map(func(r rune) rune {
		if !strconv.IsPrint(r) {
			return ' '
		}
		return r
	}, text), maxWarningLength)
}
