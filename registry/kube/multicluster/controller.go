// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/internal/options"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/kube"
	"github.com/pilotkit/pilotkit/registry/kube/internal/reach"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// Options configure a Controller. The zero value works.
type Options struct {
	// Namespace is the namespace of the Secrets. The default is "istio-system".
	Namespace string
	// SyncTimeout is the time after which a new registry of a cluster that has not synced is Late.
	// Then HasSynced does not wait for the cluster any more. The default is 30 s.
	SyncTimeout time.Duration
	// Optional allows the Secrets to be forbidden: then there are none, until they may be read. By
	// default HasSynced waits for them. Therefore a host that starts before it is granted access
	// does not mistake an empty mesh for the complete one.
	Optional bool
	// MaxBackoff is the MaxBackoff of kube.Options, for the requests for Secrets.
	MaxBackoff time.Duration
	// AllowLocal accepts kubeconfigs with plugins, which run programs on this host, and with file
	// names, which are read. By default they are rejected.
	AllowLocal bool
	// OwnCluster is the cluster that the Secrets are in. A remote cluster with this name is
	// rejected.
	OwnCluster registry.ClusterID
	// Registry returns the options of a cluster's registry. ClusterID is set by the controller. The
	// default is the zero value.
	Registry func(cluster registry.ClusterID) kube.Options
	// Created is called with each registry that has synced, before it becomes part of the
	// aggregate. A host can subscribe there to the workloads of clusters. Nil does nothing.
	Created func(r *kube.Controller)
	// Updater gets a request for a full push to all proxies when a cluster was added, removed or
	// replaced, because gateways, networks and identities may differ. With nil, which is
	// xdsupdate.Discard and a warning, only the services are pushed, by the aggregate.
	Updater xdsupdate.XDSUpdater
	// Logger receives problems that an operator can fix, and an error for each panic of a function
	// of the host, with the stack. Nil discards.
	Logger *slog.Logger
}

// The states of a Cluster.
const (
	// Connecting means that the registry of the kubeconfig has not synced yet.
	Connecting State = "connecting"
	// Synced means that the registry has synced, and is part of the aggregate.
	Synced State = "synced"
	// Late means that the registry has not synced in time. It keeps trying.
	Late State = "late"
	// Failed means that the kubeconfig cannot be used.
	Failed State = "failed"
)

// State is the state of a cluster.
type State string

// Cluster is the status of a remote cluster.
type Cluster struct {
	ID registry.ClusterID
	// Secret is the name of the Secret in use. Ignored are the names of other Secrets with the
	// cluster, sorted.
	Secret  string
	Ignored []string
	// State is the state of the kubeconfig in the Secret.
	State State
	// Err is the reason why the cluster cannot be read, or not entirely. If the state is Failed, it
	// is the error of the kubeconfig; otherwise the kinds that the API server of the cluster does
	// not serve at present, as in kube.Controller.Errors. It is nil if there is no problem.
	Err error
	// Registry is the cluster's registry in the aggregate, Since the time when it was added; nil if
	// there is none. Unless State is Synced, it belongs to an earlier kubeconfig.
	Registry *kube.Controller
	Since    time.Time
}

// Controller watches the Secrets. Create it with New.
type Controller struct {
	options    Options
	client     kubernetes.Interface
	registries *aggregate.Controller

	mu sync.Mutex
	// secrets are the existing Secrets, by name; listed is set when all are known.
	secrets map[string]*corev1.Secret
	listed  bool
	// clusters are the clusters in the Secrets, and clusters that are being removed.
	clusters map[registry.ClusterID]*remote
	// requests has the result of the last request for Secrets.
	requests *reach.Watcher
	ctx      context.Context //nolint:containedctx // that of Run, in which clusters work
	group    sync.WaitGroup
}

// New returns a controller of the remote clusters in the Secrets that a client reads. It starts no
// goroutine before Run.
func New(client kubernetes.Interface, registries *aggregate.Controller, opts ...Options) *Controller {
	o := options.One("multicluster.New", opts)
	if o.Namespace == "" {
		o.Namespace = "istio-system"
	}
	if o.SyncTimeout == 0 {
		o.SyncTimeout = 30 * time.Second
	}
	if o.MaxBackoff <= 0 {
		o.MaxBackoff = reach.DefaultMaxBackoff
	}
	if o.Registry == nil {
		o.Registry = func(registry.ClusterID) kube.Options { return kube.Options{} }
	}
	if o.Created == nil {
		o.Created = func(*kube.Controller) {}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Updater == nil {
		o.Logger.Warn("multicluster.Options has no Updater, so that only services are pushed when clusters come and go: " +
			"set it to the ads.Server; xdsupdate.Discard{} means that none is wanted")
		o.Updater = xdsupdate.Discard{}
	}
	return &Controller{
		options: o, client: client, registries: registries,
		secrets: map[string]*corev1.Secret{}, clusters: map[registry.ClusterID]*remote{},
		requests: reach.New(client, func(err error) {
			o.Logger.Warn("the secrets of remote clusters cannot be read", slog.Any("error", err))
		}),
	}
}

// Run watches the Secrets until stop is closed, and returns when the registries of all clusters
// have ended. They stay part of the aggregate. A second call panics.
func (c *Controller) Run(stop <-chan struct{}) {
	ctx, cancel := context.WithCancel(context.Background()) //nolint:forbidigo // Run has a stop channel
	c.begin(ctx, cancel)
	var watching sync.WaitGroup
	watching.Go(func() {
		reach.Reflect(ctx, "multicluster", c.secretsOf(), &corev1.Secret{}, (*store)(c), c.options.MaxBackoff)
	})
	<-stop
	cancel()
	watching.Wait()
	c.group.Wait()
}

// begin sets the context of Run. A second call panics.
func (c *Controller) begin(ctx context.Context, cancel context.CancelFunc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx != nil {
		cancel()
		panic("multicluster: Run called twice")
	}
	c.ctx = ctx
}

const selector = "istio/multiCluster=true"

func (c *Controller) secretsOf() cache.ListerWatcher {
	secrets := c.client.CoreV1().Secrets(c.options.Namespace)
	return reach.ListWatch(c.client, secrets, func(o *metav1.ListOptions) { o.LabelSelector = selector }, c.do)
}

// do makes a request for Secrets.
func (c *Controller) do(ctx context.Context, request func() error) error {
	err := c.requests.Do(ctx, request)
	if c.options.Optional && apierrors.IsForbidden(err) {
		c.mu.Lock()
		c.listed = true
		c.mu.Unlock()
	}
	return err
}

// Err returns the reason why the Secrets cannot be read at present, nil if they can. The known
// clusters stay.
func (c *Controller) Err() error {
	if err := c.requests.Err(); err != nil {
		return fmt.Errorf("list secrets of %s: %w", c.options.Namespace, err)
	}
	return nil
}

// HasSynced reports whether the Secrets are known, and each cluster in them has a registry, is
// late, or has failed.
func (c *Controller) HasSynced() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.clusters {
		if r.status.State == Connecting && r.status.Registry == nil {
			return false
		}
	}
	return c.listed
}

// Pending implements configstore.PendingSyncer.
func (c *Controller) Pending() string {
	if err := c.Err(); err != nil {
		return err.Error()
	}
	c.mu.Lock()
	running := c.ctx != nil
	c.mu.Unlock()
	if !running {
		return "Run has not been called"
	}
	for _, cluster := range c.Clusters() {
		if cluster.State == Connecting && cluster.Registry == nil {
			if cluster.Err == nil {
				return fmt.Sprintf("cluster %s has not been read", cluster.ID)
			}
			return fmt.Sprintf("cluster %s has not been read: %v", cluster.ID, cluster.Err)
		}
	}
	return ""
}

// Clusters returns the clusters, sorted by ID.
func (c *Controller) Clusters() []Cluster {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []Cluster
	for _, r := range c.clusters {
		if r.wanted != nil {
			out = append(out, r.statusLocked())
		}
	}
	slices.SortFunc(out, func(a, b Cluster) int { return strings.Compare(string(a.ID), string(b.ID)) })
	return out
}

// reconcileLocked updates the clusters to the Secrets. Of several Secrets with one cluster the
// oldest is used, of equally old ones the first by name, so that a new Secret never takes over an
// existing cluster. It returns the Secrets that are newly ignored.
func (c *Controller) reconcileLocked() (ignored []ignoredSecret) {
	wanted, others := map[registry.ClusterID]*kubeconfig{}, map[registry.ClusterID][]string{}
	secrets := slices.SortedFunc(maps.Values(c.secrets), func(a, b *corev1.Secret) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
	for _, s := range secrets {
		for cluster, data := range s.Data {
			id := registry.ClusterID(cluster)
			if wanted[id] != nil {
				others[id] = append(others[id], s.Name)
				continue
			}
			wanted[id] = &kubeconfig{secret: s.Name, data: string(data)}
		}
	}
	for id, k := range wanted {
		c.wantLocked(id, k)
		ignored = append(ignored, c.clusters[id].ignoreLocked(others[id])...)
	}
	for id := range c.clusters {
		if wanted[id] == nil {
			c.wantLocked(id, nil)
		}
	}
	return ignored
}

// ignoreLocked records the other Secrets with the cluster, and returns the new ones.
func (r *remote) ignoreLocked(names []string) (added []ignoredSecret) {
	slices.Sort(names)
	for _, name := range names {
		if !slices.Contains(r.status.Ignored, name) {
			added = append(added, ignoredSecret{cluster: string(r.status.ID), used: r.status.Secret, ignored: name})
		}
	}
	r.status.Ignored = names
	return added
}

// ignoredSecret reports a Secret whose entry for a cluster is ignored.
type ignoredSecret struct{ cluster, used, ignored string }

// clientOf returns a client of a cluster.
func (c *Controller) clientOf(id registry.ClusterID, k *kubeconfig) (kubernetes.Interface, error) {
	if id == c.options.OwnCluster && id != "" {
		return nil, fmt.Errorf("cluster %s is the one that the Secrets are in", id)
	}
	config, err := restConfig([]byte(k.data), c.options.AllowLocal)
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(rest.AddUserAgent(config, "pilotkit"))
}

// store receives the Secrets from a reflector.
type store Controller

func (s *store) change(edit func(*Controller)) error {
	c := (*Controller)(s)
	for _, i := range c.changeSecrets(edit) { // with no lock held, because the log handler may call Clusters
		c.options.Logger.WarnContext(c.ctx, "a cluster is in two secrets", slog.String("cluster", i.cluster),
			slog.String("used", i.used), slog.String("ignored", i.ignored))
	}
	return nil
}

func (c *Controller) changeSecrets(edit func(*Controller)) []ignoredSecret {
	c.mu.Lock()
	defer c.mu.Unlock()
	edit(c)
	return c.reconcileLocked()
}

// Add implements cache.ReflectorStore.
func (s *store) Add(object any) error {
	return s.change(func(c *Controller) {
		if secret, ok := object.(*corev1.Secret); ok {
			c.secrets[secret.Name] = secret
		}
	})
}

// Update implements cache.ReflectorStore.
func (s *store) Update(object any) error { return s.Add(object) }

// Delete implements cache.ReflectorStore.
func (s *store) Delete(object any) error {
	return s.change(func(c *Controller) {
		if secret, ok := object.(*corev1.Secret); ok {
			delete(c.secrets, secret.Name)
		}
	})
}

// Replace implements cache.ReflectorStore.
func (s *store) Replace(objects []any, _ string) error {
	return s.change(func(c *Controller) {
		clear(c.secrets)
		for _, o := range objects {
			if secret, ok := o.(*corev1.Secret); ok {
				c.secrets[secret.Name] = secret
			}
		}
		c.listed = true
	})
}

// Resync implements cache.ReflectorStore.
func (s *store) Resync() error { return nil }
