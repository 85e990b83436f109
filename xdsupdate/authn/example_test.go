// SPDX-License-Identifier: Apache-2.0

package authn_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/authn"
	"github.com/pilotkit/pilotkit/xdsupdate/csds"
)

// The clients of a control plane have the identities of their certificates, or, without a
// certificate, of their tokens.
func Example() {
	dir := mounted() // where the certificate, its key and the authorities of clients are, and rotate
	defer os.RemoveAll(dir)
	serving, err := authn.NewTLS(authn.TLSOptions{
		Files: authn.Files{
			Certificate: filepath.Join(dir, "tls.crt"), Key: filepath.Join(dir, "tls.key"), Authorities: filepath.Join(dir, "ca.crt"),
		},
		CertificateOptional: true, // for tokens
	})
	if err != nil {
		log.Print(err)
		return
	}
	registries := aggregate.NewController()
	clients := authn.New(authn.Options{
		TrustDomains: []string{"example.org"}, Services: registries,
		Token: func(_ context.Context, token string) (authn.Identity, error) {
			if token != "that of ci" { // in truth: verify a signature
				return authn.Identity{}, errors.New("not known")
			}
			return authn.Identity{Namespace: "ci", ServiceAccount: "runner"}, nil
		},
	})

	server := ads.New(registries, ads.Options{Proxy: clients.Proxy})
	grpcServer := grpc.NewServer(append(ads.ServerOptions(), grpc.Creds(serving.Credentials()))...)
	server.Register(grpcServer)
	csds.New(server, csds.Options{Authorize: func(ctx context.Context) error {
		id, err := clients.Identity(ctx)
		if err == nil && id.Namespace != "operators" {
			err = status.Errorf(codes.PermissionDenied, "%s is no operator", id)
		}
		return err
	}}).Register(grpcServer)
	// Then: go serving.Run(stop), and so on.

	fmt.Println(len(grpcServer.GetServiceInfo()), "services,", clients.Refusals()[authn.CauseNamespace], "refusals")
	// Output: 2 services, 0 refusals
}
