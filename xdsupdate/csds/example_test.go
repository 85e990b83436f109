// SPDX-License-Identifier: Apache-2.0

package csds_test

import (
	"fmt"
	"net/http"

	"google.golang.org/grpc"

	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/csds"
)

// A host serves CSDS in addition to ADS, and a page with the config dump of one proxy. The host
// authorizes the callers.
func Example() {
	server, grpcServer := ads.New(nil), grpc.NewServer()
	server.Register(grpcServer)
	csds.New(server, csds.Options{Authorize: operators}).Register(grpcServer)

	dump := func(w http.ResponseWriter, r *http.Request) {
		node := r.FormValue("node")
		for proxy := range server.Resources(func(s ads.Stream) bool { return s.Node == node }) {
			data, err := csds.ConfigDump(proxy)
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			_, _ = w.Write(data)
			return // of one that reconnects there may be two
		}
		http.Error(w, "no such proxy", http.StatusNotFound)
	}
	http.NewServeMux().HandleFunc("/config_dump", dump)

	fmt.Println(len(grpcServer.GetServiceInfo()), "services")
	// Output: 2 services
}
