// SPDX-License-Identifier: Apache-2.0

package configstore

import (
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/pilotkit/pilotkit/internal/excerpt"
	"github.com/pilotkit/pilotkit/internal/guard"
)

// Validator checks the content of an object, which has the kind and the message
// types of its schema. Both results list all findings, not only the first;
// warnings never refuse an object. It may be called by several goroutines at once.
type Validator func(Config) (warnings, violations []Violation)

// Schema describes one kind.
type Schema struct {
	// GroupVersionKind is the kind in its canonical version.
	GroupVersionKind GroupVersionKind
	// Aliases are the other versions under which objects of this kind may be
	// written, for example "v1alpha3". They have the same content.
	Aliases []string
	// Plural is the name of the Kubernetes resource, for example
	// "serviceentries".
	Plural string
	// ClusterScoped kinds have no namespace.
	ClusterScoped bool
	// Spec is an empty message of the type that specs of this kind have.
	Spec proto.Message
	// Status is the same for statuses; nil if the kind has none.
	Status proto.Message
	// Validate checks objects; nil accepts all.
	Validate Validator
	// Text returns the rule for the strings in a field of the spec, and in the messages below it; a
	// nil Text means TextAny for all. For a map it is called for the key and the value of its
	// entries. The strings in a google.protobuf.Struct, Value or StringValue follow the rule of the
	// enclosing field, and the strings of messages in an Any follow the rules of their own fields.
	Text func(field protoreflect.FieldDescriptor) TextRule
	// Equal compares two specs of the type of Spec, neither of them nil, as proto.Equal does, but
	// faster; nil means proto.Equal. Stores compare specs on every update.
	Equal func(a, b proto.Message) bool

	// Closed is for kinds whose objects restrict access, so that the absence of an object admits
	// traffic. It returns the spec that takes the place of an unreadable one and admits nothing in
	// its scope. spec is the readable part of it (see Unread), or nil. If Closed is nil, an
	// unreadable object is treated as absent, and unknown fields have no effect.
	Closed func(spec proto.Message) proto.Message

	// added is the identity of the schema, which unions share. It is nil if the schema is in no
	// Schemas.
	added *addedSchema
}

// addedSchema is made when a schema is added to a SchemasBuilder. It has a field because the addresses
// of empty structs are not distinct.
type addedSchema struct{ _ byte }

// NewSpec returns a new, empty spec of the kind.
func (s Schema) NewSpec() proto.Message { return s.Spec.ProtoReflect().New().Interface() }

// NewStatus returns a new, empty status, or nil if the kind has none.
func (s Schema) NewStatus() proto.Message {
	if s.Status == nil {
		return nil
	}
	return s.Status.ProtoReflect().New().Interface()
}

// EqualSpecs reports whether two specs of the kind are equal. Both may be nil.
func (s *Schema) EqualSpecs(a, b proto.Message) bool {
	if s.Equal == nil || a == nil || b == nil || a == b {
		return EqualMessage(a, b)
	}
	return s.Equal(a, b)
}

// Check validates an object against the schema: its name, its scope, the message
// types of Spec and Status, its strings, and then the rules of Validate, which is
// called only if the object can be encoded. The error is a *ValidationError with
// every violation, or nil; of each list there are MaxViolations at most.
func (s Schema) Check(c Config) (warnings []Violation, err error) {
	violations := s.checkShape(c)
	if len(violations) == 0 {
		var unread []Violation
		var sound bool
		if violations, unread, sound = s.checkText(&c); sound && s.Validate != nil {
			var more []Violation
			warnings, more = s.validate(c)
			violations = append(violations, more...)
		}
		if len(unread) > 0 && len(violations) == 0 {
			warnings = append(slices.Clip(warnings), s.consequences(unread)...)
		}
	}
	warnings = bounded(warnings)
	if len(violations) > 0 {
		return warnings, &ValidationError{Key: c.Key(), Violations: bounded(violations)}
	}
	return warnings, nil
}

// consequences adds what follows to the messages about the unreadable parts of a spec.
func (s Schema) consequences(unread []Violation) []Violation {
	for i := range unread {
		if s.Closed != nil {
			unread[i].Message += ": nothing is let in of what the object may concern"
		} else {
			unread[i].Message += ", and has no effect"
		}
	}
	return unread
}

// validate calls Validate, and turns a panic into a violation.
func (s Schema) validate(c Config) (warnings, violations []Violation) {
	p := guard.Call(func() { warnings, violations = s.Validate(c) })
	if p != nil {
		return nil, []Violation{{Message: "the validator ended in a " + p.Error()}}
	}
	return warnings, violations
}

// checkShape holds what Validate may rely on.
func (s Schema) checkShape(c Config) []Violation {
	var out []Violation
	add := func(field, format string, args ...any) {
		out = append(out, Violation{Field: field, Message: excerpt.Sprintf(format, args...)})
	}
	if c.Name == "" {
		add("metadata.name", "is required")
	}
	if s.ClusterScoped && c.Namespace != "" {
		add("metadata.namespace", "must be empty for a cluster-scoped kind, is %q", c.Namespace)
	}
	switch {
	case c.Spec == nil || !c.Spec.ProtoReflect().IsValid():
		add("spec", "is required")
	case !sameType(c.Spec, s.Spec):
		add("spec", "must be a %s, is a %s", name(s.Spec), name(c.Spec))
	}
	switch {
	case c.Status == nil:
	case s.Status == nil:
		add("status", "the kind has none")
	case !c.Status.ProtoReflect().IsValid():
		add("status", "must not be a nil message")
	case !sameType(c.Status, s.Status):
		add("status", "must be a %s, is a %s", name(s.Status), name(c.Status))
	}
	return out
}

func sameType(a, b proto.Message) bool {
	return a.ProtoReflect().Type() == b.ProtoReflect().Type()
}

func name(m proto.Message) string { return string(m.ProtoReflect().Descriptor().FullName()) }
