// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/types/known/sourcecontextpb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/pilotkit/pilotkit/configstore"
)

const group = "storetest.pilotkit.io"

// kinds returns the schemas of the suite: Widget has everything, Gadget no
// status and no alias, Planet no namespace, Comet specs of a type of its own.
func kinds() configstore.Schemas {
	return configstore.NewSchemasBuilder().
		MustAdd(configstore.Schema{
			GroupVersionKind: widgetKind(), Aliases: []string{"v1beta1", "v1alpha1"}, Plural: "widgets",
			Spec: &structpb.Struct{}, Status: &structpb.Struct{}, Validate: noBadFields,
		}).
		MustAdd(configstore.Schema{GroupVersionKind: gadgetKind(), Plural: "gadgets", Spec: &structpb.Struct{}}).
		MustAdd(configstore.Schema{
			GroupVersionKind: planetKind(), Plural: "planets", ClusterScoped: true, Spec: &structpb.Struct{},
		}).
		MustAdd(configstore.Schema{GroupVersionKind: cometKind(), Plural: "comets", Spec: &sourcecontextpb.SourceContext{}}).
		Build()
}

func widgetKind() configstore.GroupVersionKind {
	return configstore.GroupVersionKind{Group: group, Version: "v1", Kind: "Widget"}
}

func widgetAlias() configstore.GroupVersionKind {
	return configstore.GroupVersionKind{Group: group, Version: "v1beta1", Kind: "Widget"}
}

func gadgetKind() configstore.GroupVersionKind {
	return configstore.GroupVersionKind{Group: group, Version: "v1", Kind: "Gadget"}
}

func planetKind() configstore.GroupVersionKind {
	return configstore.GroupVersionKind{Group: group, Version: "v1", Kind: "Planet"}
}

func cometKind() configstore.GroupVersionKind {
	return configstore.GroupVersionKind{Group: group, Version: "v1", Kind: "Comet"}
}

// unknownKind is one that the schemas do not have.
func unknownKind() configstore.GroupVersionKind {
	return configstore.GroupVersionKind{Group: group, Version: "v1", Kind: "Phantom"}
}

// noBadFields refuses each field of the spec whose name begins with "bad".
func noBadFields(c configstore.Config) (warnings, violations []configstore.Violation) {
	spec, ok := c.Spec.(*structpb.Struct)
	if !ok {
		return nil, nil
	}
	for _, field := range slices.Sorted(maps.Keys(spec.GetFields())) {
		if strings.HasPrefix(field, "bad") {
			violations = append(violations, configstore.Violation{Field: "spec." + field, Message: "is bad"})
		}
	}
	return nil, violations
}

func object(kind configstore.GroupVersionKind, namespace, name, value string) configstore.Config {
	return configstore.Config{
		Meta: configstore.Meta{GroupVersionKind: kind, Namespace: namespace, Name: name},
		Spec: content(value),
	}
}

// owner is complete, as an API server wants it.
func owner() []configstore.OwnerReference {
	return []configstore.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: "u1"}}
}

func widget(namespace, name, value string) configstore.Config {
	return object(widgetKind(), namespace, name, value)
}

func gadget(namespace, name, value string) configstore.Config {
	return object(gadgetKind(), namespace, name, value)
}

func content(value string) *structpb.Struct {
	return &structpb.Struct{Fields: map[string]*structpb.Value{"value": structpb.NewStringValue(value)}}
}

// valueOf reads back what content wrote; "" for anything else.
func valueOf(c *configstore.Config) string {
	if c == nil {
		return ""
	}
	spec, ok := c.Spec.(*structpb.Struct)
	if !ok {
		return ""
	}
	return spec.GetFields()["value"].GetStringValue()
}
