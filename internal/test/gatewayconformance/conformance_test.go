// SPDX-License-Identifier: Apache-2.0

package gatewayconformance

import (
	"flag"
	"io/fs"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/gateway-api/apis/v1alpha2"
	"sigs.k8s.io/gateway-api/apis/v1alpha3"
	"sigs.k8s.io/gateway-api/conformance"
	"sigs.k8s.io/gateway-api/conformance/tests"
	"sigs.k8s.io/gateway-api/conformance/utils/config"
	"sigs.k8s.io/gateway-api/conformance/utils/suite"
)

// TestConformance runs the suite. Its subtests have the names of the suite's tests.
func TestConformance(t *testing.T) {
	if !isInside() {
		require(t)
		runAgain(t)
		return
	}
	cluster := startCluster(t)
	s, err := suite.NewConformanceTestSuite(options(t, cluster.config))
	if err != nil {
		t.Fatal(err)
	}
	if isWhole() {
		t.Cleanup(func() { checkReport(t, s) })
	}
	s.Setup(t, tests.ConformanceTests)
	if err := s.Run(t, tests.ConformanceTests); err != nil {
		t.Fatal(err)
	}
}

// isWhole reports whether all tests of the suite run.
func isWhole() bool {
	return !strings.Contains(flag.Lookup("test.run").Value.String(), "/") && flag.Lookup("test.skip").Value.String() == ""
}

// timeouts are shorter than the suite's, because no cloud is involved.
func timeouts() config.TimeoutConfig {
	c := config.DefaultTimeoutConfig()
	for _, d := range []*time.Duration{
		&c.GatewayMustHaveAddress, &c.GatewayMustHaveCondition, &c.GatewayStatusMustHaveListeners, &c.GatewayListenersMustHaveConditions,
		&c.ListenerSetMustHaveCondition, &c.ListenerSetListenersMustHaveConditions, &c.GWCMustBeAccepted, &c.HTTPRouteMustNotHaveParents,
		&c.HTTPRouteMustHaveCondition, &c.TLSRouteMustHaveCondition, &c.TCPRouteMustHaveCondition, &c.RouteMustHaveParents,
		&c.NamespacesMustBeReady, &c.LatestObservedGenerationSet, &c.DefaultTestTimeout,
	} {
		*d = 30 * time.Second
	}
	return c
}

// options returns the options of the suite.
func options(t *testing.T, of *rest.Config) suite.ConformanceOptions {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientscheme.AddToScheme, gatewayv1.Install, v1alpha2.Install, v1alpha3.Install, apiextensionsv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	clientOptions := client.Options{Scheme: scheme}
	c, err := client.New(of, clientOptions)
	if err != nil {
		t.Fatal(err)
	}
	clientset, err := kubernetes.NewForConfig(of)
	if err != nil {
		t.Fatal(err)
	}
	return suite.ConformanceOptions{
		ConfigurableOptions: suite.ConfigurableOptions{
			GatewayClassName: className, CleanupTestResources: true,
			TimeoutConfig:     timeouts(),
			SupportedFeatures: supported(), ConformanceProfiles: profiles(), Implementation: implementation(),
			UsableNetworkAddresses:   []gatewayv1.GatewaySpecAddress{{Type: new(gatewayv1.IPAddressType), Value: staticUsable}},
			UnusableNetworkAddresses: []gatewayv1.GatewaySpecAddress{{Type: new(gatewayv1.IPAddressType), Value: staticOutside}},
		},
		Client: c, ClientOptions: clientOptions, Clientset: clientset, RestConfig: of, ManifestFS: []fs.FS{&conformance.Manifests},
	}
}
