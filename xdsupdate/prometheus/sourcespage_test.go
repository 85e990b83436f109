// SPDX-License-Identifier: Apache-2.0

package prometheus_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/xdsupdate/debug"
	"github.com/pilotkit/pilotkit/xdsupdate/prometheus"
)

// TestSourcesPageAndMetric: the debug page and the metrics count the same errors, of which the last
// error of the source is one.
func TestSourcesPageAndMetric(t *testing.T) {
	source := knowsAll("all")
	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/sources", nil)
	request.Header.Set("Accept", "application/json")
	answer := httptest.NewRecorder()
	debug.New(debug.Options{Sources: []configstore.Source{source}}).ServeHTTP(answer, request)
	var page struct {
		Sources []struct {
			Name             string
			Errors, Warnings float64
		}
	}
	if err := json.Unmarshal(answer.Body.Bytes(), &page); err != nil || len(page.Sources) != 1 {
		t.Fatalf("the page is %s: %v", answer.Body, err)
	}
	got := scrape(t, registered(t, prometheus.NewSourceCollector(source)))
	check(t, "errors and warnings of page and metrics",
		[]float64{page.Sources[0].Errors, page.Sources[0].Warnings, got[`pilotkit_source_errors{source="all"}`], got[`pilotkit_source_warnings{source="all"}`]},
		[]float64{2, 3, 2, 3})
}
