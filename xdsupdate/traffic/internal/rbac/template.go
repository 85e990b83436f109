// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"fmt"
	"regexp"
	"strings"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	template "github.com/envoyproxy/go-control-plane/envoy/extensions/path/match/uri_template/v3"
	"google.golang.org/protobuf/types/known/anypb"
)

// The operators of path templates.
const (
	oneSegment  = "{*}"
	allSegments = "{**}"
)

// ordinaryPath matches the paths that operators of Envoy's templates accept (Envoy 1.40,
// uri_template_matcher): paths without "[" or "]", and, if paths are not normalized, without other
// characters that should be encoded.
const ordinaryPath = "[-a-zA-Z0-9._~%!$&'()*+,;:@=/]*"

// oneOrdinarySegment matches the texts that the operator "*" of Envoy's templates accepts.
const oneOrdinarySegment = "[-a-zA-Z0-9._~%!$&'()*+,;:@=]+"

// TemplateExpression returns an RE2 expression that matches the same whole paths as an Envoy
// template.
func TemplateExpression(template string) string {
	operators := strings.NewReplacer(`\*\*`, ordinaryPath, `\*`, oneOrdinarySegment)
	return operators.Replace(regexp.QuoteMeta(template))
}

func isTemplate(path string) bool {
	return strings.Contains(path, oneSegment) || strings.Contains(path, allSegments)
}

func pathTemplate(value string) (*rbacv3.Permission, error) {
	config, err := anypb.New(&template.UriTemplateMatchConfig{
		PathTemplate: strings.NewReplacer(oneSegment, "*", allSegments, "**").Replace(value),
	})
	if err != nil {
		return nil, fmt.Errorf("path template %q: %w", value, err)
	}
	return &rbacv3.Permission{Rule: &rbacv3.Permission_UriTemplate{
		UriTemplate: &core.TypedExtensionConfig{Name: "uri-template", TypedConfig: config},
	}}, nil
}

// widePath is path for fields where a mismatch admits the request. It also matches a path that no
// template accepts if the path begins and ends like the template, because otherwise a "[" in it
// would bypass a policy that denies.
func widePath(value string) (*rbacv3.Permission, error) {
	exactly, err := path(value)
	if err != nil || !isTemplate(value) {
		return exactly, err
	}
	s := permissions()
	parts := []*rbacv3.Permission{s.not(urlPath(regex(ordinaryPath)))}
	if before := value[:strings.IndexByte(value, '{')]; before != "" {
		parts = append(parts, urlPath(prefix(before)))
	}
	if after := value[strings.LastIndexByte(value, '}')+1:]; after != "" {
		parts = append(parts, urlPath(suffix(after)))
	}
	return s.or([]*rbacv3.Permission{exactly, s.allOf(parts)}), nil
}
