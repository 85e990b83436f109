// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
)

// workloadGroupRules are the rules of Istio 1.30 for a WorkloadGroup. Its template follows the
// rules of a WorkloadEntry, except that the address is filled in when workloads join.
func workloadGroupRules(spec *field, _ configstore.Config, group *networking.WorkloadGroup) {
	checkLabels(spec.child("metadata"), "labels", group.GetMetadata().GetLabels())
	template := spec.child("template")
	if group.Template == nil {
		template.refuse("is required")
	}
	checkTemplate(template, group.Template)
	// The API asks for both to be left out; they are overwritten.
	if group.Template.GetAddress() != "" {
		template.child("address").warn("has no effect: each workload brings its own")
	}
	if len(group.Template.GetLabels()) > 0 {
		template.child("labels").warn("should be set in spec.metadata.labels instead")
	}
	if group.Probe != nil {
		checkProbe(spec.child("probe"), group.Probe)
	}
}

func checkTemplate(at *field, template *networking.WorkloadEntry) {
	if path, unix := strings.CutPrefix(template.GetAddress(), unixScheme); unix {
		checkUnixPath(at.child("address"), path)
		if len(template.GetPorts()) > 0 {
			at.child("ports").refuse("must be empty for a unix domain socket")
		}
	}
	checkWorkloadPorts(at, template.GetPorts(), nil)
	checkLabels(at, "labels", template.GetLabels())
}

func checkProbe(at *field, probe *networking.ReadinessProbe) {
	checkNotNegative(at.child("initialDelaySeconds"), probe.InitialDelaySeconds)
	checkNotNegative(at.child("timeoutSeconds"), probe.TimeoutSeconds)
	checkNotNegative(at.child("periodSeconds"), probe.PeriodSeconds)
	checkNotNegative(at.child("successThreshold"), probe.SuccessThreshold)
	checkNotNegative(at.child("failureThreshold"), probe.FailureThreshold)
	switch method := probe.HealthCheckMethod.(type) {
	case *networking.ReadinessProbe_HttpGet:
		checkHTTPProbe(at.child("httpGet"), method.HttpGet)
	case *networking.ReadinessProbe_TcpSocket:
		checkPortNumber(at.child("tcpSocket").child("port"), method.TcpSocket.GetPort())
	case *networking.ReadinessProbe_Exec:
		command := at.child("exec").child("command")
		switch {
		case len(method.Exec.GetCommand()) == 0:
			command.refuse("is required")
		case method.Exec.GetCommand()[0] == "":
			at.child("exec").elem("command", 0).refuse("must not be empty")
		}
	case *networking.ReadinessProbe_Grpc:
		// The API has it, but Istio 1.30 refuses it.
		at.child("grpc").refuse("must be httpGet, tcpSocket or exec instead")
	default:
		at.refuse("must have one of httpGet, tcpSocket, exec")
	}
}

func checkHTTPProbe(at *field, get *networking.HTTPHealthCheckConfig) {
	checkPortNumber(at.child("port"), get.GetPort())
	switch get.GetScheme() {
	case "", "HTTP", "HTTPS":
	default:
		at.child("scheme").refuse("must be HTTP or HTTPS, is %q", get.GetScheme())
	}
	for place, header := range elements(at, "httpHeaders", get.GetHttpHeaders()) {
		checkHeaderName(place.child("name"), header.Name)
	}
}

func checkNotNegative(at *field, n int32) {
	if n < 0 {
		at.refuse("must not be negative, is %d", n)
	}
}
