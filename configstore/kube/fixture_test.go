// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/kube"
	"github.com/pilotkit/pilotkit/configstore/storetest"
)

// limits returns the schemas of one kind in a group of the test's own.
func limits(group string) configstore.Schemas {
	return configstore.NewSchemasBuilder().MustAdd(limit(group)).Build()
}

func limit(group string) configstore.Schema {
	return configstore.Schema{
		GroupVersionKind: configstore.GroupVersionKind{Group: group, Version: "v1", Kind: "Limit"},
		Aliases:          []string{"v1beta1"}, Plural: "limits",
		Spec: &structpb.Struct{}, Status: &structpb.Struct{}, Validate: noBadValue,
	}
}

// noBadValue rejects the value "bad", and warns of values that begin with "odd".
func noBadValue(c configstore.Config) (warnings, violations []configstore.Violation) {
	spec, _ := c.Spec.(*structpb.Struct)
	switch value := spec.GetFields()["value"].GetStringValue(); {
	case value == "bad":
		violations = append(violations, configstore.Violation{Field: "spec.value", Message: "is bad"})
	case strings.HasPrefix(value, "odd"):
		warnings = append(warnings, configstore.Violation{Field: "spec.value", Message: "is odd"})
	}
	return warnings, violations
}

func object(kind configstore.GroupVersionKind, namespace, name, value string) configstore.Config {
	return configstore.Config{
		Meta: configstore.Meta{GroupVersionKind: kind, Namespace: namespace, Name: name},
		Spec: &structpb.Struct{Fields: map[string]*structpb.Value{"value": structpb.NewStringValue(value)}},
	}
}

func labelled(c configstore.Config, revision string) configstore.Config {
	c.Labels = map[string]string{"istio.io/rev": revision}
	return c
}

func value(c *configstore.Config) string {
	if c == nil {
		return ""
	}
	spec, _ := c.Spec.(*structpb.Struct)
	return spec.GetFields()["value"].GetStringValue()
}

func create(tb testing.TB, s configstore.ConfigStore, c configstore.Config) string {
	tb.Helper()
	revision, err := s.Create(c)
	if err != nil {
		tb.Fatal(err)
	}
	return revision
}

func update(tb testing.TB, s configstore.ConfigStore, c configstore.Config) string {
	tb.Helper()
	revision, err := s.Update(c)
	if err != nil {
		tb.Fatal(err)
	}
	return revision
}

// await waits until the cache has a write.
func await(tb testing.TB, c *kube.Cache, object configstore.Config, revision string) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), patience)
	defer cancel()
	if err := c.Await(ctx, object.Key(), revision); err != nil {
		tb.Fatalf("%v; errors: %v", err, c.Errors())
	}
}

func record(c configstore.ConfigStoreCache, kind configstore.GroupVersionKind) *storetest.Recorder {
	r := &storetest.Recorder{}
	c.RegisterEventHandler(kind, r.Handle)
	return r
}
