// SPDX-License-Identifier: Apache-2.0

package debug

import (
	"context"
	"time"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// podPatience bounds the wait for registries, because a registry that does not run never answers.
const podPatience = 5 * time.Second

// podPart explains whether a pod is an endpoint of the page's service.
type podPart struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Answers are the explanations of the registries that know pods, in the order of the
	// registries.
	Answers []podAnswer `json:"answers"`
}

// podAnswer is the explanation of one registry.
type podAnswer struct {
	Cluster registry.ClusterID `json:"cluster,omitempty"`
	// Endpoints are the endpoints of the pod, empty if the pod is not an endpoint.
	Endpoints []endpointRow `json:"endpoints"`
	// Reasons explain why the pod is not an endpoint, or describe problems of an endpoint.
	Reasons []string `json:"reasons"`
	// Error is set if the registry could not answer.
	Error string `json:"error,omitempty"`
}

// explainPod asks the registries about the pod of the parameters pod and pod_namespace. The
// namespace defaults to that of the service.
func (h *handler) explainPod(q *query, page *servicePage) {
	registries := partsOf[registry.PodExplainer](h.Services)
	page.CanExplainPods = len(registries) > 0
	if !page.CanExplainPods || !q.is("pod") {
		return
	}
	page.Pod = &podPart{Namespace: page.Namespace, Name: q.text("pod"), Answers: []podAnswer{}}
	if q.is("pod_namespace") {
		page.Pod.Namespace = q.text("pod_namespace")
	}
	ctx, cancel := context.WithTimeout(q.Context(), podPatience)
	defer cancel()
	for _, r := range registries {
		page.Pod.Answers = append(page.Pod.Answers, podAnswerOf(ctx, r, page))
	}
}

func podAnswerOf(ctx context.Context, r registry.PodExplainer, page *servicePage) podAnswer {
	answer := podAnswer{Endpoints: []endpointRow{}, Reasons: []string{}}
	if instance, ok := r.(registry.Instance); ok {
		answer.Cluster = instance.Cluster()
	}
	e, err := r.Explain(ctx, page.Hostname, page.Pod.Namespace, page.Pod.Name)
	if err != nil {
		answer.Error = err.Error()
		return answer
	}
	for _, endpoint := range e.Endpoints[:min(len(e.Endpoints), maxLimit)] {
		answer.Endpoints = append(answer.Endpoints, endpointRowOf(xdsupdate.ShardKey{}, endpoint))
	}
	answer.Reasons = append(answer.Reasons, e.Reasons...)
	return answer
}
