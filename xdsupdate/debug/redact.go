// SPDX-License-Identifier: Apache-2.0

package debug

import (
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/structpb"
	security "istio.io/api/security/v1beta1"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/keyset"
	"github.com/pilotkit/pilotkit/internal/redact"
)

// secretKey reports whether fields of this name hold secrets in untyped parts of objects
// (google.protobuf.Struct), such as the patch of an EnvoyFilter.
func secretKey(name string) bool {
	letters := strings.Map(func(r rune) rune {
		if r < 'a' || r > 'z' {
			return -1
		}
		return r
	}, strings.ToLower(name))
	for _, end := range []string{
		"privatekey", "password", "passphrase", "secretkey", "clientsecret", "hmacsecret", "tokensecret", "apikey", "accesskey",
		"sessionticketkeys", "bearertoken", "authtoken", "accesstoken", "inlinebytes",
	} {
		if strings.HasSuffix(letters, end) {
			return true
		}
	}
	return letters == "secret" || letters == "token" || letters == "credentials"
}

// lastApplied is the annotation in which kubectl stores the whole object as it was applied.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// redacted returns a copy of an object without its secrets.
func (h *handler) redacted(c configstore.Config) configstore.Config {
	c = c.Clone()
	for _, m := range []proto.Message{c.Spec, c.Status} {
		if m != nil {
			redact.Message(m)
			redactStructs(m.ProtoReflect())
		}
	}
	for name, value := range c.Annotations {
		if c.Annotations[name] = redactText(value); name == lastApplied {
			c.Annotations[name] = redact.Mark
		}
	}
	if h.Redact != nil {
		h.Redact(&c)
	}
	return c
}

// redactStructs redacts the untyped fields that secretKey matches, and private keys in all texts of
// a message.
func redactStructs(m protoreflect.Message) {
	if s, ok := m.Interface().(*structpb.Struct); ok {
		for name, value := range s.GetFields() {
			redactValue(value, secretKey(name))
		}
		return
	}
	if rule, ok := m.Interface().(*security.JWTRule); ok && rule.GetJwks()+rule.GetJwksUri() != "" {
		rule.Jwks, rule.JwksUri = keyset.WithoutPrivate(rule.GetJwks()), keyset.Shown(rule.GetJwksUri())
	}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.IsMap():
			redactMap(f, v.Map())
		case f.IsList():
			redactList(f, v.List())
		case f.Message() != nil:
			redactStructs(v.Message())
		case f.Kind() == protoreflect.StringKind:
			if text := v.String(); redactText(text) != text {
				m.Set(f, protoreflect.ValueOfString(redactText(text)))
			}
		}
		return true
	})
}

func redactMap(f protoreflect.FieldDescriptor, values protoreflect.Map) {
	values.Range(func(key protoreflect.MapKey, v protoreflect.Value) bool {
		switch f.MapValue().Kind() {
		case protoreflect.MessageKind:
			redactStructs(v.Message())
		case protoreflect.StringKind:
			values.Set(key, protoreflect.ValueOfString(redactText(v.String())))
		default:
		}
		return true
	})
}

func redactList(f protoreflect.FieldDescriptor, values protoreflect.List) {
	for i := range values.Len() {
		switch v := values.Get(i); f.Kind() {
		case protoreflect.MessageKind:
			redactStructs(v.Message())
		case protoreflect.StringKind:
			values.Set(i, protoreflect.ValueOfString(redactText(v.String())))
		default:
		}
	}
}

// redactValue redacts an untyped value. If secret is set, it redacts all texts in the value.
func redactValue(value *structpb.Value, secret bool) {
	switch kind := value.GetKind().(type) {
	case *structpb.Value_StringValue:
		if kind.StringValue = redactText(kind.StringValue); secret {
			kind.StringValue = redact.Mark
		}
	case *structpb.Value_NumberValue:
		if secret {
			value.Kind = &structpb.Value_StringValue{StringValue: redact.Mark}
		}
	case *structpb.Value_ListValue:
		for _, v := range kind.ListValue.GetValues() {
			redactValue(v, secret)
		}
	case *structpb.Value_StructValue:
		for name, v := range kind.StructValue.GetFields() {
			redactValue(v, secret || secretKey(name))
		}
	}
}

// redactText removes PEM private keys from a text, because error messages may quote one.
func redactText(text string) string {
	const end = "PRIVATE KEY-----"
	for from := 0; ; {
		begin, name := cutKey(text[from:])
		if begin < 0 {
			return text
		}
		begin += from
		rest := text[begin+name:]
		after := ""
		if _, behind, ok := strings.Cut(rest, end); ok {
			after = behind
		}
		text = text[:begin] + redact.Mark + after
		from = begin + len(redact.Mark)
	}
}

// cutKey returns the position and the length of the header of a private key, -1 if there is none.
func cutKey(text string) (begin, length int) {
	const start, end = "-----BEGIN ", "PRIVATE KEY-----"
	for from := 0; ; {
		at := strings.Index(text[from:], start)
		if at < 0 {
			return -1, 0
		}
		at += from
		line, _, _ := strings.Cut(text[at+len(start):], "\n")
		if i := strings.Index(line, end); i >= 0 && i < len("ENCRYPTED OPENSSH ") {
			return at, len(start) + i + len(end)
		}
		from = at + len(start)
	}
}
