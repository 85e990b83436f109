// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"errors"
	"strings"

	networking "istio.io/api/networking/v1alpha3"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
)

// textSchema is the schema of VirtualServices without the rules of the kind, to check the
// characters of texts.
func textSchema() configstore.Schema {
	schema, _ := istio.Schemas().Find(istio.VirtualService)
	schema.Validate = nil
	return schema
}

// badText returns the problem of the texts of an HTTP route, with the field, or "". The CRDs allow
// control characters in many fields, but a VirtualService with them is invalid, and Envoys reject
// it.
func (c *Converter) badText(route *networking.HTTPRoute) string {
	_, err := c.texts.Check(configstore.Config{
		Meta: configstore.Meta{GroupVersionKind: istio.VirtualService, Name: "rule"},
		Spec: &networking.VirtualService{Http: []*networking.HTTPRoute{route}},
	})
	var invalid *configstore.ValidationError
	if !errors.As(err, &invalid) {
		return ""
	}
	first := invalid.Violations[0]
	return strings.TrimPrefix(first.Field, "spec.http[0].") + ": " + first.Message
}

// isHostname reports whether a text is a host name in any case, with or without a wildcard, or
// anyHost.
func isHostname(name string) bool {
	name = strings.ToLower(name)
	return name == anyHost || len(validation.IsDNS1123Subdomain(strings.TrimPrefix(name, "*."))) == 0
}
