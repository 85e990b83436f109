// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"slices"
	"strconv"
	"strings"
)

// rules are the rows of DECISIONS.md that a comparison must know, in the order in
// which they are applied: what concerns names comes before what forgets them.
var rules = []func(*comparison){
	(*comparison).t67,
	(*comparison).t68,
	(*comparison).t69,
	(*comparison).t71,
	(*comparison).t76,
	(*comparison).t72,
	(*comparison).t73,
	(*comparison).t80, (*comparison).t83t84,
	(*comparison).t50, (*comparison).t42, (*comparison).reachable, (*comparison).t53, (*comparison).t45, (*comparison).t04Gateways,
	(*comparison).t03, (*comparison).t05, (*comparison).t11, (*comparison).t20t21,
	(*comparison).t02t04, (*comparison).t06t09t10, (*comparison).t12, (*comparison).t13, (*comparison).t86, (*comparison).t87, (*comparison).t64, (*comparison).t55,
	(*comparison).t30, (*comparison).t66, (*comparison).t37, (*comparison).t38, (*comparison).t40, (*comparison).t51, (*comparison).t56, (*comparison).t62,
	(*comparison).t31, (*comparison).t33, (*comparison).t36, (*comparison).t52, (*comparison).t65,
	(*comparison).t54t64,
	(*comparison).s30, (*comparison).authorizations,
}

// applyRules applies the rows of DECISIONS.md to both states.
func (c *comparison) applyRules() {
	for _, rule := range rules {
		rule(c)
	}
}

func (c *comparison) isGRPC() bool   { return c.proxy.Kind == kindGRPC }
func (c *comparison) isRouter() bool { return c.proxy.Kind == kindRouter }

// both visits all resources of a section, recorded ones and ours.
func (c *comparison) both(s section, visit func(tree)) {
	for _, r := range slices.Concat(c.want[s], c.got[s]) {
		visit(r)
	}
}

// remove removes resources of a section from both states.
func (c *comparison) remove(s section, which func(name string) bool) {
	without := func(r tree) bool { return which(name(s, r)) }
	c.want[s] = slices.DeleteFunc(c.want[s], without)
	c.got[s] = slices.DeleteFunc(c.got[s], without)
}

// find returns the resource of a name, or nil.
func find(s section, list resources, n string) tree {
	if i := slices.IndexFunc(list, func(r tree) bool { return name(s, r) == n }); i >= 0 {
		return list[i]
	}
	return nil
}

// eachRoute visits the routes of route configurations.
func eachRoute(list resources, visit func(config, vh, route tree)) {
	for _, config := range list {
		for _, vh := range objects(config, "virtualHosts") {
			for _, r := range objects(vh, "routes") {
				visit(config, vh, r)
			}
		}
	}
}

// clusterName is the name of a cluster, taken apart.
type clusterName struct {
	prefix, subset, host string
	port                 uint32
}

func parseCluster(n string) (clusterName, bool) {
	separator := "|"
	if strings.HasPrefix(n, "outbound_.") {
		separator = "_."
	}
	parts := strings.SplitN(n, separator, 4)
	if len(parts) != 4 || parts[0] != "outbound" {
		return clusterName{}, false
	}
	port, err := strconv.ParseUint(strings.TrimSuffix(parts[1], "_"), 10, 32)
	return clusterName{prefix: parts[0] + separator, port: uint32(port), subset: strings.TrimSuffix(parts[2], "_"), host: parts[3]}, err == nil
}

func (n clusterName) String() string {
	if n.prefix == "outbound_." {
		return "outbound_." + strconv.Itoa(int(n.port)) + "_." + n.subset + "_." + n.host
	}
	return "outbound|" + strconv.Itoa(int(n.port)) + "|" + n.subset + "|" + n.host
}

// renameClusters renames the clusters that recorded routes and TCP proxies lead to.
func (c *comparison) renameClusters(rename func(n clusterName) clusterName) {
	change := func(o tree, field string) {
		if n, ok := parseCluster(text(o, field)); ok {
			o[field] = rename(n).String()
		}
	}
	eachRoute(c.want[routes], func(_, _, route tree) {
		action := object(route, "route")
		change(action, "cluster")
		for _, w := range objects(object(action, "weightedClusters"), "clusters") {
			change(w, "name")
		}
		for _, m := range objects(action, "requestMirrorPolicies") {
			change(m, "cluster")
		}
	})
	for _, l := range c.want[listeners] {
		each(l, func(o tree) {
			if !strings.HasSuffix(text(o, "@type"), "TcpProxy") {
				return
			}
			change(o, "cluster")
			for _, w := range objects(object(o, "weightedClusters"), "clusters") {
				change(w, "name")
			}
		})
	}
}

// reachable keeps the recorded resources that are still referred to after listeners
// have been changed.
func (c *comparison) reachable() {
	if c.proxy.Kind == kindSidecar {
		return
	}
	if names := routesOf(c.want[listeners]); true {
		c.want[routes] = slices.DeleteFunc(c.want[routes], func(r tree) bool { return !slices.Contains(names, name(routes, r)) })
	}
	if c.isGRPC() {
		names := clustersOf(c.want[routes])
		unused := func(s section) func(tree) bool {
			return func(r tree) bool { return !slices.Contains(names, name(s, r)) }
		}
		c.want[clusters] = slices.DeleteFunc(c.want[clusters], unused(clusters))
		c.want[endpoints] = slices.DeleteFunc(c.want[endpoints], unused(endpoints))
	}
}
