// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"encoding/xml"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const meshFiles, meshCases = "testdata/mesh", "testdata/mesh.tests.yaml"

// TestMesh runs the cases of a file against a mesh, and lists the rule that no case reaches.
func TestMesh(t *testing.T) {
	code, out, errs := execute(t, "", "-test", meshCases, "-coverage", meshFiles)
	if code != exitFine || errs != "" {
		t.Errorf("exit code %d, %q\n%s", code, errs, out)
	}
	for _, want := range []string{
		"=== RUN   the database is forwarded by TCP\n--- PASS: the database is forwarded by TCP\n", "\nPASS\n",
		"no case reaches VirtualService shop/cart, http[1]\n", "no case reaches VirtualService shop/younger, http[0]\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if n := strings.Count(out, "no case reaches"); n != 2 {
		t.Errorf("%d rules are not reached\n%s", n, out)
	}
}

// TestGatewayAPI runs cases against routes of the Gateway API. Their class and certificate are
// elsewhere.
func TestGatewayAPI(t *testing.T) {
	code, out, errs := execute(t, "", "-test", "testdata/gatewayapi.tests.yaml", "-coverage", "testdata/gatewayapi")
	if code != exitFine || errs != "" || strings.Count(out, "--- PASS") != 3 {
		t.Errorf("exit code %d, %q\n%s", code, errs, out)
	}
	if _, unreached, _ := strings.Cut(out, "\nPASS\n"); strings.Count(unreached, "no case reaches") != 1 || !strings.Contains(unreached, ` http[0] "shop.cart.0"`) {
		t.Errorf("%q are not reached, want the redirect", unreached)
	}
}

// TestGatewaysOfOneClass: several Gateways share a class that is elsewhere, and a certificate.
func TestGatewaysOfOneClass(t *testing.T) {
	const more = "apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {name: more, namespace: ingress}\nspec:\n" +
		"  gatewayClassName: public\n  listeners: [{name: https, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: example-com}]}}]\n"
	if code, out, errs := execute(t, more, "-test", "testdata/gatewayapi.tests.yaml", "testdata/gatewayapi", "-"); code != exitFine {
		t.Errorf("exit code %d, %q\n%s", code, errs, out)
	}
}

// TestOtherController: a Gateway of a class that belongs to another controller serves nothing.
func TestOtherController(t *testing.T) {
	const class = "apiVersion: gateway.networking.k8s.io/v1\nkind: GatewayClass\nmetadata: {name: public}\nspec: {controllerName: example.com/other}\n"
	code, out, _ := execute(t, class, "-test", "testdata/gatewayapi.tests.yaml", "testdata/gatewayapi", "-")
	if code != exitProblems || !strings.Contains(out, "FAIL: 3 of 3 cases") || !strings.Contains(out, "no listener") {
		t.Errorf("exit code %d\n%s", code, out)
	}
}

// TestGatewayAPIErrors: an unknown field of a route is an error with its place.
func TestGatewayAPIErrors(t *testing.T) {
	const wrong = "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: cart}\nspec:\n  parentRef: [{name: edge}]\n"
	code, out, _ := execute(t, wrong, "-")
	if code != exitProblems || !strings.HasPrefix(out, "<stdin>:5:3: HTTPRoute/default/cart: spec.parentRef: unknown field") {
		t.Errorf("exit code %d, %s", code, out)
	}
}

// testCases runs cases of a text.
func testCases(t *testing.T, text string, args ...string) (code int, out, errs string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "cases.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errs = execute(t, "", append(args, "-test", file, meshFiles)...)
	return code, strings.ReplaceAll(out, file, "cases.yaml"), strings.ReplaceAll(errs, file, "cases.yaml")
}

// TestMeshFails: results other than the expected ones, and requests that nothing decides about.
func TestMeshFails(t *testing.T) {
	const from = "\n  from: {gateway: ingress, labels: {app: edge}, address: 192.0.2.9}\n"
	for name, tc := range map[string]struct{ text, want string }{
		"another destination": {
			from + "  request: {port: 80, host: shop.example.com}\n  expect: {to: other}",
			`cases.yaml:2: to: "other" is expected, but the request goes to cart.shop.internal:80 as shop.example.com/cart/ by VirtualService shop/outside, http[0]` + "\n--- FAIL: x\nFAIL: 1 of 1 cases\n",
		},
		"a denial": {
			from + "  request: {port: 80, host: shop.example.com, path: /admin}\n  expect: {to: other}",
			"cases.yaml:2: the request is denied by AuthorizationPolicy ingress/admin, rules[0] (status 403)\n--- FAIL: x",
		},
		"no denial": {
			from + "  request: {port: 80, host: shop.example.com}\n  expect: {denied: AuthorizationPolicy ingress/admin}",
			`denied: "AuthorizationPolicy ingress/admin" is expected, but the request goes to`,
		},
		"other shares": {
			"\n  from: {workload: shop}\n  request: {port: 80, host: cart.shop.internal}\n  expect: {shares: {\"cart.shop.internal:80/v1\": 80, \"cart.shop.internal:80/v2\": 20}}",
			"shares: map[cart.shop.internal:80/v1:80 cart.shop.internal:80/v2:20] are expected, but they are map[cart.shop.internal:80/v1:90",
		},
		"an unknown address": {
			"\n  from: {gateway: ingress, labels: {app: edge}}\n  request: {port: 80, host: shop.example.com, path: /admin}\n  expect: {status: 403}",
			"cases.yaml:2: the result depends on what the case does not say: ",
		},
		"nothing decides": {
			from + "  request: {port: 81, host: shop.example.com}\n  expect: {path: /}",
			"nothing decides about the request: no listener\n--- ERROR: x",
		},
		"an effect":    {"\n  expect: {noEffect: VirtualService shop/cart}", "noEffect: VirtualService shop/cart has an effect"},
		"no such one":  {"\n  expect: {noEffect: VirtualService shop/none}", "noEffect: there is no VirtualService shop/none\n--- ERROR: x"},
		"no redirect":  {from + "  request: {port: 80, host: shop.example.com}\n  expect: {redirect: http://x/}", `redirect: "http://x/" is expected`},
		"another rule": {from + "  request: {port: 80, host: shop.example.com}\n  expect: {rule: VirtualService shop/out}", `rule: "VirtualService shop/out" is expected`},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, _ := testCases(t, "cases:\n- name: x"+tc.text+"\n")
			if code != exitProblems || !strings.Contains(out, tc.want) {
				t.Errorf("exit code %d, %s\nwant %s", code, out, tc.want)
			}
		})
	}
}

// TestMeshFile: errors in the file of cases have their places.
func TestMeshFile(t *testing.T) {
	for text, want := range map[string]string{
		"cases:\n- name: x\n  from: {workload: shop}\n  request: {prot: 80}\n  expect: {status: 1}\n":   "cases.yaml:4:13: request.prot: unknown field; known are claims",
		"cases:\n- name: x\n  from: {workload: shop}\n  request: {port: many}\n  expect: {status: 1}\n": "cases.yaml:4:19: request.port: has a value of another type",
		"cases:\n- name: x\n  from: {}\n  expect: {status: 1}\n":                                        "cases.yaml:2:3: from: exactly one of gateway, workload and grpc is needed",
		"cases:\n- name: x\n  from: {grpc: a}\n":                                                        "cases.yaml:2:3: expect: at least one field is needed",
		"cases: []\n":                                                                                   "cases.yaml:1:1: cases: a list with at least one case is needed",
		"":                                                                                              "cases.yaml:1:1: the file is empty",
		"cases:\n- [\n":                                                                                 "cases.yaml:1:1: yaml:",
	} {
		if code, _, errs := testCases(t, text); code != exitUnusable || !strings.Contains(errs, want) {
			t.Errorf("exit code %d, %q, want %q", code, errs, want)
		}
	}
	if code, _, errs := execute(t, "", "-test", "none.yaml", meshFiles); code != exitUnusable || !strings.Contains(errs, "none.yaml") {
		t.Errorf("a missing file: %d, %q", code, errs)
	}
	if code, out, _ := execute(t, "", "-test", meshCases, "testdata/shop"); code != exitProblems || strings.Contains(out, "=== RUN") {
		t.Errorf("input with errors: %d, %s", code, out)
	}
}

// TestMeshFormats: the other formats of results can be read.
func TestMeshFormats(t *testing.T) {
	_, out, _ := execute(t, "", "-o", "json", "-coverage", "-test", meshCases, meshFiles)
	var results struct {
		Cases      []struct{ Name, Result string }
		NotReached []string
	}
	if err := json.Unmarshal([]byte(out), &results); err != nil || len(results.Cases) != 10 || results.Cases[0].Result != "PASS" || len(results.NotReached) != 2 {
		t.Errorf("%v, %+v", err, results)
	}
	_, out, _ = testCases(t, "cases:\n- {name: a <b>, from: {workload: shop}, request: {port: 80, host: cart.shop.internal}, expect: {status: 1}}\n", "-o", "junit")
	var suite struct {
		Failures int `xml:"failures,attr"`
		Cases    []struct {
			Name    string `xml:"name,attr"`
			Failure *struct {
				Message string `xml:"message,attr"`
			} `xml:"failure"`
		} `xml:"testcase"`
	}
	if err := xml.Unmarshal([]byte(out), &suite); err != nil || suite.Failures != 1 || suite.Cases[0].Name != "a <b>" || suite.Cases[0].Failure == nil {
		t.Errorf("%v, %+v", err, suite)
	}
}
